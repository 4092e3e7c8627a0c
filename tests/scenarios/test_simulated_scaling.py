"""A simulated group whose number of processes follows the real scaler."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from eventproc import ConfigurationError, EventProcessorConfig
from eventproc._command.verbs.simulate import memory_account
from eventproc._core.scaling.decision import Reason, ScalingRules
from eventproc._core.scaling.readings import PartitionReading, Reading
from eventproc._simulation import (
    Scaling,
    Script,
    parse_event,
    report_of,
    run_script,
    scaling_report_of,
)
from eventproc._simulation.scaled_world import magnified

RULES = ScalingRules(
    drain_target=timedelta(minutes=2),
    cooldown=timedelta(minutes=1),
    start_time=timedelta(seconds=10),
    checkpoint_interval=timedelta(seconds=10),
    rate_of_one=10.0,
)


def script_of(*events, load=8.0, minutes=10, processors=1, **rules) -> Script:
    """Write a script for 12 partitions and processes that handle 10 events in a second."""
    return Script(
        partition_count=12,
        processor_count=processors,
        events=[parse_event(event) for event in events],
        duration=timedelta(minutes=minutes),
        config=EventProcessorConfig(uses_store_thread=False),
        scaling=Scaling(load=load, process_rate=10.0, rules=replace(RULES, **rules)),
    )


def result_of(script):
    """Play a script; return its history and the report on the scaler."""
    history = run_script(script, memory_account)
    return history, scaling_report_of(history, script.scaling.rules)


def test_processes_follow_the_load_up_and_down():
    """Five times the load drains within the target and a fifth, and none is handled twice."""
    start_time = timedelta(seconds=25)
    history, report = result_of(
        script_of("load:40@3m", "load:8@9m", minutes=14, start_time=start_time)
    )
    start, more, fewer = report.events

    assert (start.processes, start.load) == ((1,), 8)
    assert more.load == 40
    assert max(more.processes) >= 4
    assert more.reversals <= 1
    assert more.seconds_to_drain <= 1.2 * RULES.drain_target.total_seconds()
    assert more.worst_wait_seconds >= start_time.total_seconds()  # Nothing helps before.
    assert fewer.processes[-1] == 1
    assert all(event.duplicates == 0 for event in report.events)
    assert 0.25 < report.process_hours < 1.5
    assert list(history.memberships[-1].members) == ["p01"]  # The newest are stopped first.
    votes = [vote.replicas for vote in report.votes]
    rises = sum(max(0, later - earlier) for earlier, later in pairwise(votes))
    assert len({service.owner_id for service in history.services}) == 1 + rises
    assert [vote.replicas for vote in report.votes] == [
        wanted
        for former, wanted in pairwise([None, *(vote.replicas for vote in history.votes)])
        if wanted != former
    ]


def test_one_seed_gives_one_history():
    """Votes included."""
    script = script_of("load:30", minutes=3)

    assert run_script(script, memory_account) == run_script(script, memory_account)


@pytest.mark.long
def test_a_restart_of_all_processes_scales_nothing_out():
    """The backlog that it leaves behind drains."""
    _, report = result_of(script_of("restart:9@4m", processors=2, load=15))
    _, restart = report.events

    assert set(restart.processes) == {2}
    assert restart.backlog_max > 0
    assert restart.seconds_to_drain is not None


def test_from_zero_and_back():
    """The first event starts a process, and without events there is none again."""
    script = script_of("load:5@4m", "load:0@6m", load=0.0, minutes=10, replicas_min=0)
    history, report = result_of(script)
    reasons = [vote.reason for vote in report.votes]

    assert [event.processes for event in report.events] == [(1, 0), (0, 1), (1, 0)]
    assert Reason.WOKEN.value in reasons
    assert report.events[1].worst_wait_seconds >= RULES.start_time.total_seconds()
    assert history.votes[-1].running == 0
    assert report_of(history).totals.spread_final == 0


def test_a_rolling_deployment_is_not_taken_for_processes_too_many():
    """The new ones that wait for a share are left alone."""
    history, report = result_of(script_of("roll:2@245s", processors=2, load=15))

    assert len({service.owner_id for service in history.services}) == 4
    assert report.events[-1].processes == (2,)
    assert report.events[-1].duplicates == 0
    assert history.votes[-1].running == 2


@pytest.mark.parametrize("event", ["join:1", "leave:1", "crash:1"])
def test_the_scaler_alone_decides_how_many_there_are(event):
    """An event that contradicts it is refused, and so is a load without a scaler."""
    with pytest.raises(ConfigurationError, match="which decides the number of processors"):
        script_of(event)
    with pytest.raises(ConfigurationError, match="only with a scaler"):
        replace(script_of("load:1"), scaling=None)


def test_only_a_load_may_be_nothing():
    """No processor that joins is no event."""
    with pytest.raises(ConfigurationError, match="must be 1 or more"):
        parse_event("crash:0")


def test_many_events_are_simulated_as_fewer_that_each_take_the_time_of_several(monkeypatch):
    """Loads, backlogs and votes are those of the real number."""
    monkeypatch.setattr("eventproc._simulation.scaled_world.EVENTS_MAX", 2000)
    history, report = result_of(script_of("load:40@3m", minutes=6))

    assert history.events_each == 5
    assert 1000 < len(history.waits) < 2000
    assert max(report.events[-1].processes) >= 4
    assert report.events[-1].backlog_max > 500
    assert report.events[-1].seconds_to_drain is not None


def test_one_simulated_event_can_stand_for_several():
    """Nine events, of which four are handled, and the next of which each is three."""
    partition = PartitionReading(first=2, last=8, handled=3, owner_id="a")
    unread = replace(partition, handled=None)
    reading = Reading(at_s=1, partitions={"0": partition, "1": unread}, member_ids=frozenset({"a"}))

    large = magnified(reading, 3)

    assert large.partitions["0"] == replace(partition, first=6, last=26, handled=11)
    assert [each.backlog for each in large.partitions.values()] == [15, 21]
    assert [each.backlog for each in reading.partitions.values()] == [5, 7]
