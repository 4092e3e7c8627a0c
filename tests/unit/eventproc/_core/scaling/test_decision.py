"""Votes on the number of processes."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.scaling.decision import Reason, ScalingMemory, ScalingRules, decide
from eventproc._core.scaling.readings import PartitionReading, Reading
from eventproc.errors import ConfigurationError
from tests.unit.eventproc._core.scaling.simulated_group import SimulatedGroup

RULES = ScalingRules(rate_of_one=100.0)


def reading(at_s, *, last, handled, members=2, partitions=8, first=0):
    """Return a reading in which all partitions are alike."""
    return Reading(
        at_s=at_s,
        partitions={
            str(number): PartitionReading(
                first=first,
                last=last,
                handled=handled,
                owner_id=f"member-{number % members}" if members else None,
            )
            for number in range(partitions)
        },
        member_ids=frozenset(f"member-{number}" for number in range(members)),
    )


def decisions(rules, *readings, memory=None):
    """Return the decisions on successive readings."""
    found = []
    memory = memory or ScalingMemory()
    for each in readings:
        memory, decision = decide(memory, each, rules)
        found.append(decision)
    return found


def test_the_first_reading_confirms_the_processes_that_are_there():
    """Rates need a second reading, and a scaler that was restarted must not change the group."""
    (decision,) = decisions(RULES, reading(0, last=100_000, handled=0, members=3))

    assert (decision.replicas, decision.reason) == (3, Reason.FIRST_READING)


def test_a_group_that_falls_behind_gets_what_drains_the_backlog_in_time():
    """400 arrive, 200 are handled each second: 400/s + (12,000 + 6,000 by the start) / 270 s."""
    *_, decision = decisions(
        ScalingRules(rate_of_one=92.0),  # Five of them handle 460/s.
        reading(0, last=119, handled=59, partitions=100),
        reading(30, last=239, handled=119, partitions=100),
    )

    assert decision.backlog == 12_000
    assert (decision.arrival_per_s, decision.drain_per_s) == (400, 200)
    assert (decision.replicas, decision.reason) == (6, Reason.SCALED_OUT)


def test_the_process_with_the_most_partitions_keeps_up_as_well():
    """For 467/s five processes of 100/s are enough in sum, but not two partitions for one."""
    *_, decision = decisions(
        RULES,
        reading(0, last=1499, handled=749),
        reading(30, last=2999, handled=1499),
    )

    assert decision.replicas == 8


def with_hot_partition(found, *, last, handled):
    """Return the reading with other numbers in partition 0."""
    hot = replace(found.partitions["0"], last=last, handled=handled)
    return replace(found, partitions={**found.partitions, "0": hot})


@pytest.mark.parametrize("handled_elsewhere", [299, 149])
def test_a_partition_that_is_too_much_for_one_process_counts_as_one_process(handled_elsewhere):
    """Partition 0 gets 300/s, of which its process can handle 100, and the other seven 10/s each.

    That is a load of 170/s and not of 370/s and the backlog, so two processes stay enough.
    """
    *_, decision = decisions(
        RULES,
        with_hot_partition(reading(0, last=-1, handled=-1), last=89_999, handled=-1),
        with_hot_partition(
            reading(30, last=299, handled=handled_elsewhere), last=98_999, handled=2_999
        ),
    )

    assert decision.backlog is not None
    assert decision.backlog >= 96_000
    assert (decision.replicas, decision.reason) == (2, Reason.GROWING)


def paused(found):
    """Return the reading with all of its partitions paused."""
    partitions = {p: replace(each, is_paused=True) for p, each in found.partitions.items()}
    return replace(found, partitions=partitions)


def test_a_paused_group_gets_no_processes_for_what_arrives():
    """It keeps none that it does not need, and gets some for all that has waited when it resumes.

    Each change is measured from its beginning.
    """
    rules = ScalingRules(rate_of_one=90.0, replicas_min=1, cooldown=timedelta(minutes=1))
    settled = {"members": 2, "partitions": 100}
    pausing = [paused(reading(at_s, last=at_s, handled=0, **settled)) for at_s in range(0, 300, 30)]
    before, during = decisions(rules, *pausing)[0], decisions(rules, *pausing)[-1]

    assert (before.replicas, before.backlog) == (2, 0)
    assert (during.replicas, during.backlog, during.arrival_per_s) == (1, 0, 0)

    resuming = [
        reading(at_s, last=at_s, handled=at_s // 9 - 33, members=1, partitions=100)
        for at_s in range(300, 500, 30)
    ]
    resumed = decisions(rules, *pausing, *resuming)[len(pausing) :]

    assert resumed[0].reason is Reason.MEASURING
    assert resumed[0].backlog == 100 * 300
    assert max(decision.replicas for decision in resumed) > 2


def test_no_answer_changes_nothing():
    """Without an earlier vote there is none."""
    first, _, gap = decisions(RULES, None, reading(0, last=-1, handled=None, members=5), None)

    assert (first.replicas, first.reason) == (None, Reason.NO_ANSWER)
    assert (gap.replicas, gap.reason) == (5, Reason.NO_ANSWER)


@pytest.mark.parametrize(
    ("later", "reason"),
    [
        ({"handled": 2800}, Reason.DRAINING),
        ({"handled": 749}, Reason.NO_PROGRESS),
        ({"handled": 1499, "members": 1}, Reason.MEASURING),
    ],
)
def test_a_group_that_is_behind_is_left_alone(later, reason):
    """It drains, or more processes would not help, or its rates cannot be told."""
    first, decision = decisions(
        RULES,
        reading(0, last=19_999, handled=749),
        reading(30, **{"last": 21_499} | later),
    )

    assert (decision.replicas, decision.reason) == (first.replicas, reason)


def test_processes_that_are_about_to_start_are_waited_for():
    """The backlog grows until then, which is no reason to ask for more."""
    behind = [reading(n * 30, last=1499 * (n + 1), handled=749 * (n + 1)) for n in range(3)]

    *_, decision = decisions(RULES, *behind)

    assert (decision.replicas, decision.reason) == (8, Reason.STARTING)


@pytest.mark.parametrize("rate", [None, 100.0])
def test_from_zero_the_first_event_starts_a_process(rate):
    """No rates are needed, and no checkpoint."""
    rules = ScalingRules(replicas_min=0, rate_of_one=rate)
    empty = reading(0, last=-1, handled=None, members=0)

    before, after = decisions(rules, empty, reading(10, last=0, handled=None, members=0))

    assert before.replicas == 0
    assert (after.replicas, after.reason) == (1, Reason.WOKEN)


def test_from_zero_only_retained_events_count():
    """Retention deleted what the last checkpoint had not covered."""
    rules = ScalingRules(replicas_min=0)
    before = reading(0, last=99, handled=99, members=0)
    deleted = reading(10, last=500, handled=99, first=501, members=0)

    assert [d.replicas for d in decisions(rules, before, deleted)] == [0, 0]


def test_an_idle_group_goes_to_its_minimum_after_the_cooldown():
    """Without arrival and backlog the rate of a process does not matter."""
    rules = ScalingRules(replicas_min=0, cooldown=timedelta(minutes=2))

    found = decisions(rules, *(reading(n * 30, last=99, handled=99) for n in range(7)))

    assert [d.replicas for d in found] == [2, 2, 2, 2, 2, 0, 0]
    assert found[5].reason is Reason.SCALED_IN


def test_a_group_at_its_minimum_is_not_cooling_down():
    """Fewer would be enough, but there will never be fewer."""
    rules = ScalingRules(replicas_min=2, cooldown=timedelta(minutes=2))

    found = decisions(rules, *(reading(n * 30, last=99, handled=99) for n in range(7)))

    assert {d.replicas for d in found} == {2}
    assert {d.reason for d in found[2:]} == {Reason.ENOUGH}


def test_the_highest_vote_of_the_cooldown_counts():
    """A short lull does not stop processes that were needed a minute ago."""
    rules = ScalingRules(rate_of_one=100.0, cooldown=timedelta(minutes=2))
    rates = [10, 10, 30, 10, 10, 10]  # For each of 8 partitions; 3 processes handle 264 a second.
    ends = [sum(rates[:n]) * 30 for n in range(len(rates) + 1)]

    found = decisions(
        rules,
        *(reading(n * 30, last=e, handled=e, members=8) for n, e in enumerate(ends)),
    )

    assert [d.replicas for d in found] == [8, 8, 8, 8, 8, 3, 3]


def test_without_a_rate_a_group_that_keeps_up_stays_as_it_is():
    """What one process can do shows only when it is behind."""
    ends = [reading(n * 30, last=n * 300, handled=n * 300) for n in range(20)]

    *_, decision = decisions(ScalingRules(), *ends)

    assert (decision.replicas, decision.reason) == (2, Reason.RATE_UNKNOWN)


def test_a_long_time_between_checkpoints_is_not_taken_for_a_full_process():
    """A constant backlog of handled events shows nothing about the rate of one process."""
    ends = [reading(n * 30, last=n * 300 + 900, handled=n * 300) for n in range(20)]

    found = decisions(ScalingRules(), *ends)

    assert {d.replicas for d in found} == {2}
    assert found[-1].rate_of_one is None


def test_rules_that_contradict_each_other_are_refused():
    """At the start, with the values and the remedy."""
    with pytest.raises(ConfigurationError, match="replicas_min is 5 and replicas_max is 4"):
        ScalingRules(replicas_min=5, replicas_max=4)
    with pytest.raises(ConfigurationError, match="before a process has started"):
        ScalingRules(drain_target=timedelta(seconds=30))


# --- simulated groups ----------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [None, 100.0])
@pytest.mark.parametrize("base", [40.0, 90.0])
@pytest.mark.parametrize("written_every_s", [1, 5, 20])
@pytest.mark.parametrize("start_s", [0, 30])
def test_ten_times_the_load_drains_within_the_target(rate, base, written_every_s, start_s):
    """From the step on, in the target + 20 %, with one turn from more to fewer at most; then the
    number fits the load."""
    rules = ScalingRules(rate_of_one=rate)
    group = SimulatedGroup(
        rules=rules,
        load=lambda now_s: base if now_s < 600 else 10 * base,
        written_every_s=written_every_s,
        start_s=start_s,
    )

    group.play(3600)

    behind_s = [at_s for at_s, backlog in group.backlogs if backlog > 10 * base * 15]
    assert behind_s  # Otherwise the step would be none.
    assert max(behind_s) - 600 <= 1.2 * rules.drain_target.total_seconds()
    assert group.reversals() <= 1
    assert group.processes * group.rate >= 10 * base


@pytest.mark.parametrize("away_s", [20, 60, 120])
@pytest.mark.parametrize("written_every_s", [5, 27])
def test_a_restart_of_all_processes_does_not_scale_out(away_s, written_every_s):
    """They come back with a backlog and drain it, which shows with their first checkpoints."""
    group = SimulatedGroup(
        rules=RULES,
        load=lambda _: 600.0,
        processes=8,
        written_every_s=written_every_s,
        is_running=lambda now_s: not 600 <= now_s < 600 + away_s,
    )

    group.play(2400)

    assert max(group.votes()) == 8
    assert max(backlog for _, backlog in group.backlogs) >= 600 * (away_s - 1)


def test_an_outage_of_the_store_changes_nothing():
    """However long it lasts, and although nothing can be written until it ends."""
    group = SimulatedGroup(
        rules=RULES,
        load=lambda _: 600.0,
        processes=8,
        is_answering=lambda now_s: not 600 <= now_s < 3600,
    )

    group.play(3600)

    before = {d.replicas for at_s, d in group.decisions if at_s == 590}
    assert {d.replicas for at_s, d in group.decisions if at_s >= 600} == before


# --- properties ----------------------------------------------------------------------------------

histories = st.lists(
    st.none()
    | st.tuples(st.integers(1, 60), st.integers(0, 3000), st.integers(0, 3000), st.integers(0, 4)),
    max_size=30,
)
"""For each reading: seconds since the last one, arrived, handled, and the number of members."""


def readings_of(history):
    """Yield readings, and ``None`` where there was no answer."""
    at_s, last, handled = 0, -1, -1
    for each in history:
        if each is None:
            yield None
            continue
        gap, arrived, done, members = each
        at_s, last = at_s + gap, last + arrived
        handled = min(last, handled + done)
        yield reading(at_s, last=last, handled=handled, members=members)


rules_of_all_kinds = st.builds(
    ScalingRules,
    replicas_min=st.integers(0, 3),
    replicas_max=st.integers(3, 20),
    rate_of_one=st.none() | st.floats(1, 1000),
    cooldown=st.timedeltas(timedelta(0), timedelta(minutes=5)),
)


@given(rules_of_all_kinds, histories)
def test_votes_keep_the_limits(rules, history):
    """The number of partitions, 8, is one of them."""
    for decision in decisions(rules, *readings_of(history)):
        assert decision.replicas is None or rules.replicas_min <= decision.replicas <= min(
            rules.replicas_max, 8
        )


@given(rules_of_all_kinds, histories)
def test_a_missing_answer_never_changes_a_vote(rules, history):
    """Wherever in the history it is."""
    memory = ScalingMemory()
    for each in readings_of(history):
        former = memory.replicas
        memory, decision = decide(memory, each, rules)
        assert decision.replicas == memory.replicas
        assert each is not None or decision.replicas == former


@given(rules_of_all_kinds, histories)
def test_only_a_group_that_does_not_catch_up_grows(rules, history):
    """After the first vote: from zero, or while it is behind and drains too slowly."""
    memory = ScalingMemory()
    for each in readings_of(history):
        former = memory.replicas
        memory, decision = decide(memory, each, rules)
        if former is not None and (memory.replicas or 0) > former:
            assert decision.reason in {Reason.WOKEN, Reason.SCALED_OUT}
            assert former == 0 or len(each.member_ids) >= former
            assert decision.backlog


@given(rules_of_all_kinds, histories)
def test_the_cooldown_passes_before_the_group_shrinks(rules, history):
    """Since the vote was last raised or lowered."""
    memory, changed_s = ScalingMemory(), None
    for each in readings_of(history):
        former = memory.replicas
        memory, _ = decide(memory, each, rules)
        if each is None or memory.replicas == former:
            continue
        if former is not None and (memory.replicas or 0) < former:
            assert each.at_s - changed_s >= rules.cooldown.total_seconds()
        changed_s = each.at_s


@given(rules_of_all_kinds, histories, st.integers(-(10**6), 10**6))
def test_votes_do_not_depend_on_when_the_clock_began(rules, history, shift):
    """Only spans of time count."""
    found = list(readings_of(history))
    moved = [each and replace(each, at_s=each.at_s + shift) for each in found]

    assert decisions(rules, *found) == decisions(rules, *moved)
