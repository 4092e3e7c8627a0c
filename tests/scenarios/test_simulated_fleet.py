"""Simulated groups: the report shows what the protocol guarantees."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from functools import cache

import pytest

from eventproc import ConfigurationError, EventProcessorConfig, LoadBalancingStrategy
from eventproc._command.verbs.simulate import memory_account
from eventproc._core.placement.ordinal import Ordinal
from eventproc._core.placement.ring import Ring
from eventproc._core.placement.weighted import Weighted
from eventproc._simulation import Script, parse_event, report_of, run_script
from eventproc._simulation.history import Membership
from eventproc._simulation.report import EventReport, owners_at


def script_of(*events, seed=7, strategy=LoadBalancingStrategy.COOPERATIVE) -> Script:
    """Write a script for 18 partitions and 3 processors."""
    return Script(
        partition_count=18,
        processor_count=3,
        events=[parse_event(event) for event in events],
        duration=timedelta(minutes=10),
        config=EventProcessorConfig(uses_store_thread=False, load_balancing_strategy=strategy),
        seed=seed,
    )


@cache
def report_on(event: str) -> EventReport:
    """Return the report on an event of the script above, which is played once."""
    return report_of(run_script(script_of(event), memory_account)).events[1]


def test_one_seed_gives_one_history_and_another_seed_another():
    """All changes, listings, writes and waits are the same."""
    one, same, other = (
        run_script(script_of("join:1", "crash:1", seed=seed), memory_account) for seed in (1, 1, 2)
    )

    assert one == same
    assert one.listings != other.listings


@pytest.mark.parametrize("event", ["join:1", "leave:1", "crash:1", "restart:1", "grow:5"])
def test_each_change_moves_the_fewest_partitions(event):
    """Without a conflict or a steal, and balanced in the end."""
    report = report_on(event)

    assert report.moves == report.moves_minimum
    assert (report.moved_twice, report.conflicts, report.steals_per_cycle_max) == (0, 0, 0)
    assert report.spread_final <= 1
    assert report.seconds_to_balance is not None


@pytest.mark.parametrize("event", ["join:1", "leave:1", "roll:3"])
def test_a_planned_change_repeats_no_event(event):
    """After each hand-over delivery begins where the former owner ended."""
    report = report_on(event)

    assert report.duplicates == 0


def test_a_rolling_deploy_moves_each_partition_once():
    """New processors have another deployment id, and stand by until an old one leaves."""
    report = report_on("roll:3")

    assert (report.moves, report.moved_twice, report.spread_final) == (18, 0, 0)


def test_a_restart_with_static_membership_moves_no_partition():
    """A processor that restarts under its owner id keeps its partitions; no event is repeated."""
    report = report_on("bounce:3")

    assert (report.moves, report.duplicates, report.conflicts) == (0, 0, 0)
    assert 5 <= report.worst_gap_seconds < 20


def test_a_crash_leaves_a_gap_until_the_expiration():
    """The processor's partitions are not served until its records expire."""
    report = report_on("crash:1")

    assert 20 < report.worst_gap_seconds < 80
    assert report.duplicates > 0


def test_the_documented_algorithm_steals_one_partition_per_cycle():
    """Without hand-overs a new processor steals its share one by one."""
    script = script_of("join:1", strategy=LoadBalancingStrategy.BALANCED)
    report = report_of(run_script(script, memory_account)).events[1]

    assert (report.moves, report.moves_minimum, report.steals_per_cycle_max) == (4, 4, 1)
    assert report.conflicts == 0


@pytest.mark.parametrize("text", ["join", "fly:1", "crash:1@soon"])
def test_an_unknown_event_is_refused(text):
    """The message says what can be written."""
    with pytest.raises(ConfigurationError, match=r"join:4"):
        parse_event(text)


@pytest.mark.parametrize(
    "events", [["crash:4"], ["leave:3"], ["join:1@20m"], ["join:1@9", "leave:1@9"]]
)
def test_an_impossible_script_is_refused(events):
    """Too many processors, none left, an event too late, or two at once."""
    with pytest.raises(ConfigurationError):
        script_of(*events)


@pytest.mark.parametrize("event", ["crash:2", "leave:2", "restart:2", "bounce:2", "roll:2"])
def test_an_event_that_finds_too_few_processors_is_refused_with_its_time(event):
    """Two of three restart, which takes five seconds: two of those that run are asked for."""
    script = script_of("restart:2@20", f"{event}@22")

    with pytest.raises(ConfigurationError, match=rf"{event} at 22 s: .* \(1\).* a later time"):
        run_script(script, memory_account)


def test_an_event_may_happen_while_enough_others_restart():
    """Or after the restart: then all of them are running again."""
    history = run_script(script_of("restart:2@20", "crash:1@22", "restart:2@26"), memory_account)

    assert [event.name for event in history.script_events[1:]] == [
        *("restart:2", "crash:1", "restart:2"),
    ]


@pytest.mark.parametrize("drawn", range(4))
def test_a_rolling_restart_goes_on_when_one_of_its_processors_leaves_for_good(drawn):
    """Two leave, with some seeds one that is about to start again; the third starts again."""
    history = run_script(script_of("bounce:3@20", "leave:2@22", seed=drawn), memory_account)

    assert [each.is_up for each in history.services if each.at_s > 24][-1]
    assert len([each for each in history.services if each.is_up]) == 4


@pytest.mark.parametrize("drawn", range(4))
def test_a_rolling_restart_goes_on_when_one_of_its_processors_dies_while_it_stops(drawn):
    """With some seeds it is another one that dies; two of the three start again."""
    history = run_script(script_of("bounce:3@20", "crash:1@20.03", seed=drawn), memory_account)

    assert len([each for each in history.services if each.is_up]) == 5


def test_releases_move_as_many_partitions_as_hand_overs():
    """40 partitions on 4 processors, two more join: 12 moves, without a conflict; one dies."""
    script = Script(
        partition_count=40,
        processor_count=4,
        events=[parse_event("join:2"), parse_event("crash:1")],
        duration=timedelta(minutes=10),
        config=EventProcessorConfig(
            uses_store_thread=False, load_balancing_strategy=LoadBalancingStrategy.RELEASE
        ),
    )
    history = run_script(script, memory_account)
    start, join, crash = report_of(history).events

    assert shares_at(history, join.at_seconds) == [10, 10, 10, 10]
    assert (join.moves, join.moved_twice, join.conflicts, join.duplicates) == (12, 0, 0, 0)
    assert shares_at(history, crash.at_seconds) == [6, 6, 7, 7, 7, 7]
    assert (start.conflicts, crash.conflicts) == (0, 0)
    assert shares_at(history, history.duration_s)[-5:] == [8, 8, 8, 8, 8]
    assert sum(change.owner_id is None for change in history.changes) == 12


@pytest.mark.long
@pytest.mark.parametrize(("placement", "idle_count"), [(Ring(), 0), (Ring(literal=True), 5)])
def test_on_a_ring_no_processor_is_idle_through_a_rolling_deployment(placement, idle_count):
    """10 partitions on 10 processors, which are replaced one by one; no two claim the same one.

    With equal arcs it depends on the hashes of the partitions how many are idle: a third on
    average, and half of them here.
    """
    script = Script(
        partition_count=10,
        processor_count=10,
        events=[parse_event("roll:1")] * 10,
        duration=timedelta(minutes=22),
        config=EventProcessorConfig(uses_store_thread=False, placement=placement),
    )
    history = run_script(script, memory_account)
    events = report_of(history).events
    idle = [
        idle_at(history, end_s)
        for end_s in [*(event.at_seconds for event in events[1:]), history.duration_s]
    ]

    assert len(idle) == 11
    assert set(idle) == {idle_count}
    assert all(event.seconds_to_balance is not None for event in events)
    assert sum(event.conflicts for event in events) == 0


@pytest.mark.parametrize(
    ("placement", "shares"),
    [
        (Ordinal(literal=True), [[2, 2, 2, 4], [2, 2, 2, 2, 2], [1, 1, 1, 1, 1, 5]]),
        (Ordinal(), [[2, 2, 3, 3], [2, 2, 2, 2, 2], [1, 1, 2, 2, 2, 2]]),
    ],
    ids=["as in the document", "even"],
)
def test_ordinals_share_by_number(placement, shares):
    """10 on 4, then on 5 and on 6: in the document the last one gets the remainder."""
    script = Script(
        partition_count=10,
        processor_count=4,
        events=[parse_event("join:1@4m"), parse_event("join:1@8m")],
        duration=timedelta(minutes=12),
        config=EventProcessorConfig(uses_store_thread=False, placement=placement),
    )
    history = run_script(script, memory_account)
    first = owners_at(history, 240)

    assert [shares_at(history, at_s) for at_s in (240, 480, 720)] == shares
    assert Counter(first.values())["p04"] == (4 if placement.literal else 2)
    assert sorted(p for p, owner_id in first.items() if owner_id == "p01") == sorted(
        str(number) for number in range(2 if placement.literal else 3)
    )
    assert all(event.conflicts == 0 for event in report_of(history).events)


def test_a_processor_starts_with_the_lowest_free_ordinal():
    """As the pods of a StatefulSet: a new one takes the place of one that is gone."""
    script = script_of("leave:2@2m", "join:1@4m", "restart:1@6m")
    script = replace(script, config=replace(script.config, placement=Ordinal()))
    history = run_script(script, memory_account)
    ordinals = [ordinals_of(membership) for membership in history.memberships]

    assert ordinals[0] == [0, 1, 2]
    assert len(ordinals[1]) == 1
    assert ordinals[2] == sorted({*ordinals[1], min({0, 1} - {*ordinals[1]})})
    assert ordinals[-1] == ordinals[2]
    assert all(event.seconds_to_balance is not None for event in report_of(history).events)


def test_without_standbys_an_old_processor_ends_before_its_successor_starts():
    """In a rolling deployment with ``Ordinal``: the successor has the same ordinal and share."""
    script = script_of("roll:3")
    script = replace(script, config=replace(script.config, placement=Ordinal()))
    history = run_script(script, memory_account)
    roll = report_of(history).events[1]

    assert max(len(membership.members) for membership in history.memberships) == 3
    assert ordinals_of(history.memberships[-1]) == [0, 1, 2]
    assert (roll.duplicates, roll.conflicts, roll.spread_final) == (0, 0, 0)
    assert roll.seconds_to_balance is not None


def test_weights_belong_to_processors_in_the_order_of_joining():
    """18 partitions by weights 2, 1, 1, then 2 again for one that joins."""
    script = script_of("join:1")
    script = replace(script, weights=(2, 1, 1), config=replace(script.config, placement=Weighted()))
    history = run_script(script, memory_account)

    assert shares_at(history, 300) == [4, 5, 9]
    assert shares_at(history, history.duration_s) == [3, 3, 6, 6]
    assert report_of(history).events[1].seconds_to_balance is not None


def ordinals_of(membership: Membership) -> list[int]:
    """Return the ordinals of the members, the lowest first."""
    return sorted(f.ordinal for f in membership.members.values() if f.ordinal is not None)


def shares_at(history, at_s: float) -> list[int]:
    """Return how many partitions each owner has, the fewest first."""
    return sorted(Counter(owners_at(history, at_s).values()).values())


def idle_at(history, at_s: float) -> int:
    """Return how many of the members own nothing."""
    members = [m for m in history.memberships if m.at_s < at_s][-1].members
    return len(members.keys() - set(owners_at(history, at_s).values()))
