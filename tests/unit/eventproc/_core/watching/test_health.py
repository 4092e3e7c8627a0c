"""Verdicts on processors: live, ready, and each partition by itself."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from eventproc._core.watching.health import parts, readiness
from eventproc.models._statistics import (
    DeliveryCounters,
    GroupStatistics,
    HoldCounters,
    Phase,
    ProcessorStatistics,
    PumpStatistics,
    ResourceProcessorStatistics,
    ResourceStatistics,
)

GROUP: dict[str, Any] = {
    "owner_id": "a",
    "is_balanced": True,
    "unplaced_count": 0,
    "cycle_count": 1,
    "cycle_seconds": 0.1,
    "claim_count": 2,
    "steal_count": 0,
    "hand_over_count": 0,
    "lost_count": 0,
    "conflict_count": 0,
    "ownership_write_count": 2,
    "lease_margin_seconds": 30.0,
}

PUMP = PumpStatistics(
    partition_id="3",
    sequence_number=1,
    checkpointed_sequence_number=1,
    lag=5,
    lag_seconds=1.0,
    checkpoint_age_seconds=0.0,
    is_paused=False,
    is_stalled=False,
    counters=DeliveryCounters(),
)

RESOURCE = ResourceStatistics(
    name="a/1",
    epoch=7,
    is_trusted=True,
    failing_seconds=0.0,
    error=None,
    counters=HoldCounters(),
)


def of_partitions(*pumps: PumpStatistics, owned=("3",), **facts) -> ProcessorStatistics:
    """Return the statistics of a processor that serves these, and owns partition 3."""
    return ProcessorStatistics(
        **{**GROUP, "owned": owned, "stopped": (), **facts},
        pumps=pumps,
        counters=DeliveryCounters(),
    )


def why_not_ready(statistics: GroupStatistics, phase=Phase.SERVING) -> list[str]:
    """Return the reasons, with the names as they are in the store."""
    return list(readiness(phase, statistics, str))


@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.STOPPING])
def test_a_processor_that_starts_or_stops_is_not_ready(phase):
    """Whatever it serves."""
    assert why_not_ready(of_partitions(PUMP), phase) == [phase.value]


def test_a_processor_without_a_partition_is_ready_if_its_store_answers():
    """Otherwise it could take over nothing; with a partition, its lease is what counts."""
    without = of_partitions(owned=())
    failing = replace(without, store_error="no answer")

    assert why_not_ready(without) == []
    assert why_not_ready(failing) == ["it owns nothing, and the store fails: no answer"]
    assert why_not_ready(replace(of_partitions(PUMP), store_error="no answer")) == []


def test_a_processor_that_starts_says_what_it_waits_for():
    """One that stops does not: nothing can be done about it."""
    statistics = of_partitions(PUMP)
    awaited = "the store to answer"

    assert readiness(Phase.STARTING, statistics, str, awaited) == [
        "starting: it waits for the store to answer"
    ]
    assert readiness(Phase.STOPPING, statistics, str, awaited) == ["stopping"]
    assert readiness(Phase.SERVING, statistics, str, awaited) == []


def test_a_processor_that_owns_nothing_is_ready():
    """As one on standby, without which a rolling deployment would not go on."""
    assert why_not_ready(of_partitions(owned=())) == []


@pytest.mark.parametrize(
    "pump", [PUMP, replace(PUMP, is_paused=True), replace(PUMP, is_stalled=True)]
)
def test_a_partition_that_is_served_is_ready(pump):
    """Also one that is paused by choice; a stall concerns its partition alone."""
    assert why_not_ready(of_partitions(pump)) == []


def test_a_handler_that_fails_is_told_and_is_no_complaint():
    """A restart would not help, and the partition is served again when it succeeds."""
    (part,) = parts(of_partitions(replace(PUMP, handler_error="failed once")), str)

    assert (part.reasons, part.facts["handler_error"]) == ([], "failed once")


def test_a_pause_by_an_operator_has_its_reason_among_the_facts():
    """It is no complaint."""
    since = datetime(2026, 1, 31, 8, tzinfo=UTC)
    pump = replace(PUMP, is_paused=True, paused_since=since, pause_reason="INC-481")
    (paused,) = parts(of_partitions(pump), str)
    (other,) = parts(of_partitions(PUMP), str)

    assert not paused.reasons
    assert (paused.facts["pause_reason"], paused.facts["paused_since"]) == (
        "INC-481",
        "2026-01-31T08:00:00+00:00",
    )
    assert (other.facts["pause_reason"], other.facts["paused_since"]) == (None, None)


@pytest.mark.parametrize(
    ("pumps", "facts", "reason"),
    [
        ((), {}, "it was just claimed"),
        ((), {"restarting": ("3",)}, "it failed, and is tried again after a wait"),
        (
            (),
            {"stopped": ("3",)},
            (
                "the failure policy stopped it: restart, skip the event (eventproc checkpoints "
                "reset), or processor.resume"
            ),
        ),
        ((replace(PUMP, is_served=False),), {}, "its handler has not started"),
        (
            (replace(PUMP, is_served=False, checkpoint_error="it is damaged"),),
            {},
            "it is damaged",
        ),
        (
            (replace(PUMP, is_trusted=False),),
            {},
            "the store has not confirmed its lease in time",
        ),
        (
            (replace(PUMP, is_trusted=False),),
            {"store_error": "database is locked"},
            "the store has not confirmed its lease in time: database is locked",
        ),
    ],
)
def test_a_partition_that_is_owned_and_not_served_is_named_with_the_cause(pumps, facts, reason):
    """In readiness and among the partitions."""
    statistics = of_partitions(*pumps, **facts)
    (part,) = parts(statistics, str)

    assert why_not_ready(statistics) == [f"partition 3 is not served: {reason}"]
    assert part.reasons == [f"not served: {reason}"]


@pytest.mark.parametrize(
    ("failing_s", "call_s", "reasons"),
    [
        (9.0, None, ["there are events, and none was completed for 400 s"]),
        (10.0, None, ["not served: no events for 10 s: no answer"]),
        (
            10.0,
            390.0,
            [
                "not served: no events for 10 s: no answer",
                "a call of the handler has completed nothing for 390 s",
            ],
        ),
    ],
)
def test_a_receiver_that_fails_for_ten_seconds_is_the_cause_unless_a_call_hangs(
    failing_s, call_s, reasons
):
    """A link that breaks is opened again within that time; whether events wait is not known."""
    pump = replace(
        PUMP,
        is_stalled=True,
        progress_age_seconds=400.0,
        receiver_failing_seconds=failing_s,
        receiver_error="no answer",
        call_seconds=call_s,
    )
    (part,) = parts(of_partitions(pump), str)

    assert part.reasons == reasons
    assert part.facts["receiver_failing_s"] == failing_s


def test_what_is_handed_over_is_not_missed():
    """Its pump ends before its lease does."""
    statistics = of_partitions(handing_over=("3",))

    assert (why_not_ready(statistics), parts(statistics, str)) == ([], [])


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"is_stalled": True}, "there are events, and none was completed for 400 s"),
        (
            {"is_stalled": True, "handler_error": "the handler has failed 9 times: KeyError('x')"},
            "the handler has failed 9 times: KeyError('x')",
        ),
        (
            {"is_stalled": True, "call_seconds": 399.0},
            "a call of the handler has completed nothing for 399 s",
        ),
        (
            {"is_stalled": True, "call_seconds": 399.0, "stalled_sequence_number": 0},
            "a call of the handler has completed nothing for 399 s, at event 0",
        ),
        (
            {"is_stalled": True, "call_seconds": 5.0},
            "there are events, and none was completed for 400 s",
        ),
        ({"checkpoint_error": "no right"}, "its checkpoint cannot be stored: no right"),
    ],
)
def test_a_partition_without_progress_is_red(facts, reason):
    """The reason is what an operator can do something about: the call, or the failures."""
    pump = replace(PUMP, progress_age_seconds=400.0, **facts)
    (part,) = parts(of_partitions(pump), str)

    assert part.reasons == [reason]


def test_partitions_are_judged_each_by_itself_in_the_order_of_their_numbers():
    """One that is stalled makes no other one red; an old event alone is no reason."""
    pumps = [
        replace(PUMP, partition_id=name, is_stalled=name == "10", progress_age_seconds=9999.0)
        for name in ("10", "9", "x")
    ]
    healths = parts(of_partitions(*pumps, owned=("10", "9", "x")), str)

    assert [(each.name, not each.reasons) for each in healths] == [
        ("9", True),
        ("10", False),
        ("x", True),
    ]


@pytest.mark.parametrize(
    ("resource", "ready", "reasons"),
    [
        (RESOURCE, [], []),
        (
            replace(RESOURCE, is_trusted=False),
            ["resource a/1 is not served: the store has not confirmed its lease in time"],
            ["not served: the store has not confirmed its lease in time"],
        ),
        (
            replace(RESOURCE, error="OSError()", failing_seconds=12.0),
            [],
            ["hold has failed for 12 s"],
        ),
    ],
)
def test_a_resource_is_shown_by_its_name(resource, ready, reasons):
    """Its error may have a secret, so only the log has it."""
    statistics = ResourceProcessorStatistics(
        **{**GROUP, "owned": ("a%2F1",)}, resources=(resource,), counters=HoldCounters()
    )

    def shown(name: str) -> str:
        return name.replace("%2F", "/")

    (part,) = parts(statistics, shown)

    assert list(readiness(Phase.SERVING, statistics, shown)) == ready
    assert (part.name, list(part.reasons)) == ("a/1", reasons)
