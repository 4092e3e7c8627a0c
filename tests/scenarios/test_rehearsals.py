"""Rehearsals find the faults of handlers, and have nothing to say about the same ones mended."""

import re

import pytest

from eventproc import (
    CheckpointPolicy,
    ConfigurationError,
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
)
from eventproc._command import main
from eventproc.testing import BrokenPromise, Clock, Database, Ledger, Promise, rehearse
from tests.scenarios import rehearsed

HERE = "tests.scenarios.rehearsed"
KEY = "idempotency_key"
FAKES = (
    Ledger(f"{HERE}:charge", key=lambda order, *_, **__: order, idempotent_by=KEY),
    Ledger(f"{HERE}:reserve", key=lambda order, **_: order, idempotent_by=KEY),
    Ledger(f"{HERE}:charge_all", key=lambda orders, **_: orders, idempotent_by=KEY),
    Ledger(f"{HERE}:ship"),
    Database(f"{HERE}:database", rehearsed.SCHEMA),
)

LEAST, ONCE = Promise.AT_LEAST_ONCE, Promise.EXACTLY_ONCE
ORDER, STATE = Promise.IN_ORDER, Promise.STATE

PAIRS = {
    ("ChargesTwice", "ChargesByKey"): (ONCE, "charge: ", "happened twice"),
    ("AddsBeforeItNotes", "AddsAndNotesAtOnce"): (STATE, "the database", "totals ('k"),
    ("CountsInAGlobal", "CountsInItsState"): (STATE, "the state of partition", "the fold"),
    ("CountsWhatFailed", "CountsWhatWasDone"): (STATE, "the state of partition", "the fold"),
    ("SwallowsCancellation", "LetsCancellationThrough"): (LEAST, "ship(", "never happened"),
    ("ShipsAtOnce", "ShipsInOrder"): (ORDER, "came after ship(", "have the key"),
    ("ReturnsEarly", "ReturnsWhenDone"): (LEAST, "ship(", "never happened"),
    ("CachesForEver", "CachesWhileItOwns"): (STATE, "the database", "totals ('k"),
    ("NamesBatches", "NamesEvents"): (ONCE, "charge_all: ", " happened"),
    ("RepeatsHalf", "RepeatsByName"): (ONCE, "reserve: ", " happened"),
}
"""A fault and its cure; the promise, and words of the sentence that tells the fault."""

FIRST_SEEDS = dict(zip(PAIRS, (4, 4, 3, 23, 23, 59, 3, 49, 7, 2), strict=True))
"""Seeds that find each fault soon: the short tests begin there, so that they take some seconds."""


def rehearsed_as(name, promise, **options):
    rehearse(f"{HERE}:{name}", *FAKES, promises=[promise], **options)


@pytest.mark.parametrize("is_from_zero", [False, pytest.param(True, marks=pytest.mark.night)])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0])
def test_a_fault_is_found_and_told(pair, is_from_zero):
    """In a sentence with the effect, how often it happened, and what brought it about."""
    promise, *words = PAIRS[pair]
    first_seed = 0 if is_from_zero else FIRST_SEEDS[pair]
    with pytest.raises(BrokenPromise) as broken:
        rehearsed_as(pair[0], promise, first_seed=first_seed)

    sentence = str(broken.value).partition("\n")[0]
    assert [word for word in words if word not in sentence] == []


def test_every_rehearsal_asks_whether_each_effect_happened():
    """Whatever else is promised."""
    seed = FIRST_SEEDS["ReturnsEarly", "ReturnsWhenDone"]
    with pytest.raises(BrokenPromise, match="never happened"):
        rehearsed_as("ReturnsEarly", ORDER, first_seed=seed)


@pytest.mark.parametrize(
    "seeds",
    [3, pytest.param(50, marks=pytest.mark.long), pytest.param(200, marks=pytest.mark.night)],
)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[1])
def test_a_mended_handler_keeps_its_promise(pair, seeds):
    """No seed is a false alarm."""
    rehearsed_as(pair[1], PAIRS[pair][0], first_seed=FIRST_SEEDS[pair], seeds=seeds)


def test_a_partition_that_stops_at_an_event_promises_nothing_of_those_after_it():
    """So no rehearsal has an event that cannot be handled: with key lanes some after it are."""
    config = EventProcessorConfig(failure_policy=FailurePolicy(attempts_max=3), key_concurrency=10)

    rehearsed_as("ChargesByKey", ONCE, first_seed=2, seeds=1, config=config)


def test_the_same_seed_tells_the_same():
    """The message ends with the seed that shows it again."""
    texts = set()
    for _ in range(2):
        with pytest.raises(BrokenPromise) as broken:
            rehearsed_as("CountsInAGlobal", STATE, first_seed=3)
        texts.add(str(broken.value))

    (text,) = texts
    assert "again: first_seed=" in text


@pytest.mark.long
def test_a_request_that_its_receiver_took_for_a_repetition_is_told():
    """Or else an effect is missing though the handler asked for it."""
    seed = FIRST_SEEDS["NamesBatches", "NamesEvents"]
    with pytest.raises(BrokenPromise, match="6, taken for a repetition of '0-0'"):
        rehearsed_as("NamesBatches", ONCE, first_seed=seed)


REFUSED = {
    "Sleeps": "time.sleep()",
    "Threads": "starts a thread",
    "StartsAThread": "starts a thread",
    "Connects": "a real socket",
    "ReadsTheClock": "time.time()",
    "ReadsTheDate": "datetime.now()",
    "Blocks": "is a BlockingPartitionHandler",
    "DrawsKeys": "does not do the same for the same events",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_repeated_is_refused_by_name(name):
    """With the remedy."""
    with pytest.raises(ConfigurationError, match=re.escape(REFUSED[name])):
        rehearse(f"tests.scenarios.refused:{name}", Ledger("tests.scenarios.refused:ship"))


@pytest.mark.parametrize("attempts_max", [None, 1])
@pytest.mark.parametrize(
    ("name", "error"), [("FailsAlways", "KeyError('total')"), ("NeedsMore", "'payments'")]
)
def test_a_handler_that_fails_without_faults_keeps_no_promise(name, error, attempts_max):
    """Nothing would happen in any rehearsal, so nothing would differ."""
    policy = FailurePolicy(attempts_max=attempts_max, action=FailureAction.DEAD_LETTER)
    config = EventProcessorConfig(failure_policy=policy)
    with pytest.raises(ConfigurationError, match=re.escape(error)):
        rehearse(
            f"tests.scenarios.refused:{name}",
            Ledger("tests.scenarios.refused:ship"),
            config=config,
            seeds=20,
        )


def test_a_handler_without_effects_keeps_no_promise():
    """Its events may be of another form than the handler looks for, and nothing was tried."""
    with pytest.raises(ConfigurationError, match=r"no effect and stored no state.*--events"):
        rehearse(
            "tests.scenarios.refused:IgnoresEverything",
            Ledger("tests.scenarios.refused:ship"),
            seeds=2,
        )


def test_a_host_that_was_asked_twice_to_stop_is_cleaned_up():
    """In this seed; the first of its two stops ends, and the other one is under way for ever."""
    rehearsed_as("AddsAndNotesAtOnce", STATE, first_seed=178, seeds=1)


@pytest.mark.parametrize("seeds", [1, pytest.param(200, marks=pytest.mark.long)])
def test_what_a_host_had_handled_without_a_checkpoint_when_it_died_is_handled_again(seeds):
    """A manual policy writes it only when a processor stops, so the end needs another one."""
    rehearsed_as(
        "CountsInItsState",
        STATE,
        first_seed=35,
        seeds=seeds,
        config=EventProcessorConfig(checkpoint_policy=CheckpointPolicy.manual()),
    )


def test_a_declared_clock_is_virtual():
    """So its handler is not refused."""
    rehearse(
        "tests.scenarios.refused:ReadsTheClock",
        Ledger("tests.scenarios.refused:ship"),
        Clock("tests.scenarios.refused:time.time"),
        seeds=2,
    )


def test_a_fake_that_replaces_nothing_is_an_error():
    """Which says what there is."""
    with pytest.raises(ConfigurationError, match="bill' is not there"):
        rehearse(f"{HERE}:ShipsInOrder", Ledger(f"{HERE}:bill"))


def test_the_verb_says_what_was_kept_or_broken(capsys):
    """By its exit code, too."""
    ledger = ["--ledger", f"{HERE}:charge", "--seeds", "20"]
    kept = main(["rehearse", f"{HERE}:ChargesByKey", *ledger, "--seeds", "2"])
    broken = main(["rehearse", f"{HERE}:ChargesTwice", *ledger, "--promise", "exactly-once"])
    shown = capsys.readouterr().out

    assert (kept, broken) == (0, 1)
    assert "every promise kept: at-least-once" in shown
    assert "happened twice" in shown
