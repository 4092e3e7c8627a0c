"""Real processes that are killed: by an event, by a signal, in the middle of anything."""

import random
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from eventproc.emulator import EventHubsEmulator
from tests.integration.delivery.fleet import KEYS, Fleet

DEATHS_MESSAGE = "delivered several times, and each time the process died before it was handled"


@pytest.fixture(name="make_fleet")
def _make_fleet(tmp_path) -> Iterator[Callable[..., Fleet]]:
    fleets: list[Fleet] = []
    with EventHubsEmulator({"hub": 1}) as emulator:

        def make(store: str = "", **settings: object) -> Fleet:
            fleets.append(Fleet(emulator, tmp_path, store, **settings))
            return fleets[-1]

        yield make
        for fleet in fleets:
            fleet.end()


def test_an_event_that_kills_its_process_becomes_a_dead_letter(make_fleet):
    """After it killed four processes it is a dead letter, and all other events are handled."""
    fleet = make_fleet()
    fleet.publish(150, {40: "die", 100: "fail"})
    fleet.start("a")
    fleet.until(lambda: len(set(fleet.numbers("handled"))) == 148)
    fleet.stop("a")

    assert fleet.numbers("died") == [40] * 4
    assert [facts[2:] for facts in fleet.journal() if facts[1] == "dead-lettered"] == [
        ["0", 40, 3, "", DEATHS_MESSAGE],
        ["0", 100, 2, "ValueError", "cannot be handled"],
    ]
    assert set(fleet.numbers("handled")) == set(range(150)) - {40, 100}
    assert max(Counter(n for n in fleet.numbers("handled") if n > 40).values()) == 1


@pytest.mark.long
def test_an_event_that_fails_does_not_affect_ten_thousand_others(make_fleet, container, storage):
    """The others are handled once each, although processes take over from each other."""
    fleet = make_fleet(store=f"{container} {storage}", key_concurrency=4, pace_s=0)
    fleet.publish(10_000, {5_000: "fail"})
    fleet.start("a")
    fleet.until_lines(2_000)
    fleet.start("b")
    fleet.stop("a")
    fleet.until_lines(10_000)
    fleet.stop("b")
    counts = Counter(fleet.numbers("handled"))
    (dead_letter,) = [facts for facts in fleet.journal() if facts[1] == "dead-lettered"]

    assert set(counts) == set(range(10_000)) - {5_000}
    assert set(counts.values()) == {1}
    assert dead_letter[2:] == ["0", 5_000, 2, "ValueError", "cannot be handled"]


@pytest.mark.long
def test_key_lanes_keep_the_order_of_keys_when_processes_are_killed(make_fleet):
    """No event is lost; only events that were in flight or not checkpointed are repeated."""
    fleet = make_fleet(key_concurrency=4)
    fleet.publish(2_000)
    rng = random.Random(7)
    for owner_id in ("a", "b"):
        fleet.start(owner_id)
    for _ in range(2):
        so_far = len(fleet.numbers("handled"))
        fleet.until(lambda so_far=so_far: len(fleet.numbers("handled")) > so_far + 300)
        owner_id = rng.choice(["a", "b"])
        fleet.kill(owner_id)
        fleet.start(owner_id)
    fleet.until(lambda: len(set(fleet.numbers("handled"))) == 2_000)
    handled = fleet.numbers("handled")

    assert set(handled) == set(range(2_000))
    for key in range(KEYS):
        newest = -1
        for number in (n for n in handled if n % KEYS == key):
            assert number <= newest + KEYS  # No event is skipped; after a kill some are repeated.
            newest = max(newest, number)
