"""A hub that does not answer is visible while it lasts: a lag of zero would hide it."""

from datetime import timedelta

from eventproc._core.watching.health import readiness
from eventproc.models._statistics import Phase
from tests.scenarios.group_setup import Setup, seconds

MINUTE = timedelta(minutes=1)


async def test_a_hub_that_does_not_answer_is_reported_with_its_duration_and_no_lag(caplog):
    """By readiness and statistics soon, by the watchdog after its time; no partition moves."""
    setup = Setup()
    seen = {}

    def look(processor, when):
        statistics = processor.statistics()
        (pump,) = statistics.pumps
        seen[when] = pump, [*readiness(Phase.SERVING, statistics, str)]

    async with setup.processor(stall_timeout=MINUTE, failover_timeout=3 * MINUTE) as processor:
        setup.publish(3)
        await seconds(30)
        setup.hub.begin_outage()
        await seconds(9)
        look(processor, "at first")
        setup.publish(3)
        await seconds(31)
        look(processor, "soon")
        await seconds(360)
        look(processor, "later")
        setup.hub.end_outage()
        await seconds(60)
        look(processor, "after")

    assert [(when, pump.lag, pump.is_stalled) for when, (pump, _) in seen.items()] == [
        ("at first", None, False),
        ("soon", None, False),
        ("later", None, True),
        ("after", 0, False),
    ]
    assert seen["at first"][1] == seen["after"][1] == []
    assert [reason.split(": hub")[0] for reason in seen["soon"][1]] == [
        "partition 0 is not served: no events for 40 s"
    ]
    assert "does not answer" in str(seen["soon"][0].receiver_error)
    assert seen["later"][0].receiver_failing_seconds == 400
    assert seen["later"][0].lag_seconds is None
    assert [r.receiver_failing_s > 60 for r in caplog.records if r.event == "stall_detected"] == [
        True
    ]
    assert "partition_abandoned" not in caplog.text
    assert setup.numbers() == [*range(6)]


async def test_a_hub_without_events_that_answers_again_has_its_former_lag():
    """A link that holds is an answer, too: a quiet partition would stay red until an event."""
    setup = Setup()
    async with setup.processor() as processor:
        setup.publish(3)
        await seconds(30)
        setup.hub.begin_outage()
        await seconds(60)
        during = processor.statistics().pumps[0]
        setup.hub.end_outage()
        await seconds(60)
        after = processor.statistics().pumps[0]

    assert (during.lag, during.receiver_failing_seconds) == (None, 60)
    assert (after.lag, after.receiver_failing_seconds, after.receiver_error) == (0, 0, None)


async def test_links_that_open_and_break_again_and_again_are_one_failure():
    """An answer that lasts for a moment ends no outage."""
    setup = Setup()
    async with setup.processor() as processor:
        await seconds(30)
        for _ in range(10):
            setup.hub.break_links()
            await seconds(4)
        during = processor.statistics()
        await seconds(6)
        after = processor.statistics()

    assert [s.pumps[0].receiver_failing_seconds for s in (during, after)] == [40, 0]


async def test_a_pause_during_an_outage_is_ready_and_its_lag_unknown():
    """A pause needs no link; the number of the newest event cannot be read."""
    setup = Setup()
    async with setup.processor(stall_timeout=MINUTE) as processor:
        setup.publish(3)
        await seconds(30)
        setup.hub.begin_outage()
        await seconds(30)
        processor.pause("0")
        await seconds(100)
        statistics = processor.statistics()

    assert statistics.lag is None
    assert not statistics.pumps[0].is_stalled
    assert readiness(Phase.SERVING, statistics, str) == []
