"""One pump holds one resource: when ``hold`` runs, how it ends, and what is reported."""

import asyncio
import logging
from datetime import timedelta

import pytest

from eventproc import CloseReason
from tests.scenarios.group_setup import seconds
from tests.unit.eventproc._group.resources.pump_fixture import PumpFixture, StubHandler, virtual


@virtual
async def test_hold_is_called_with_the_name_the_token_and_the_trust_in_the_lease():
    """The name is the user's. After the end nothing is held."""
    fixture = PumpFixture()
    fixture.trusted_until_s = 30.0
    await seconds(10)
    held = fixture.handler.held

    assert (held.name, held.epoch, held.owner_id) == ("a/b", 7, "me")
    assert (held.is_held, held.remaining) == (True, timedelta(seconds=20))
    fixture.pump.lose()
    assert (held.is_held, held.remaining) == (False, timedelta(0))
    assert await fixture.running is CloseReason.OWNERSHIP_LOST


@virtual
async def test_a_lost_resource_is_cancelled_at_once_without_a_drain():
    """Another processor holds it already."""
    fixture = PumpFixture()
    await seconds(10)
    fixture.pump.lose()

    assert await fixture.ended() == (CloseReason.OWNERSHIP_LOST, 10.0)
    assert fixture.calls == [("hold", 0.0), ("cancelled", 10.0)]
    assert fixture.pump.is_lost


@virtual
async def test_a_planned_end_drains_and_then_cancels():
    """``run`` returns when ``hold`` has closed."""
    fixture = PumpFixture()
    fixture.handler.drain_s, fixture.handler.close_s = 3.0, 2.0
    await seconds(10)
    fixture.pump.end(CloseReason.HANDED_OVER)
    fixture.pump.end(CloseReason.SHUTDOWN)  # The first reason counts.

    assert await fixture.ended() == (CloseReason.HANDED_OVER, 15.0)
    assert [call for call, _ in fixture.calls] == ["hold", "drain", "drained", "cancelled"]
    assert not fixture.pump.is_lost


@virtual
async def test_a_drain_has_four_fifths_of_the_time_and_may_fail(caplog):
    """Then ``hold`` is cancelled all the same."""
    for drain_s, ended_s, error in ((100.0, 18.0, "the time was over"), (-1.0, 10.0, "cannot")):
        caplog.clear()
        fixture = PumpFixture(shutdown_timeout=timedelta(seconds=99))
        began_s = fixture.loop.time()
        fixture.handler.drain_s = drain_s
        await seconds(10)
        fixture.pump.end(CloseReason.SHUTDOWN, within=timedelta(seconds=10))
        _, at_s = await fixture.ended()

        assert at_s - began_s == pytest.approx(ended_s)
        assert error in caplog.text


@virtual
async def test_without_a_limit_of_its_own_an_end_has_the_shutdown_timeout():
    """A planned move gives none."""
    fixture = PumpFixture(shutdown_timeout=timedelta(seconds=20))
    fixture.handler.drain_s = 100.0
    await seconds(10)
    fixture.pump.end(CloseReason.HANDED_OVER)

    assert await fixture.ended() == (CloseReason.HANDED_OVER, 26.0)


@pytest.mark.parametrize("how", ["end", "lose"])
@virtual
async def test_a_hold_that_does_not_end_is_reported_once(how, caplog):
    """After the time that it had: of the stop, or ``handoff_timeout`` after a loss."""
    fixture = PumpFixture(handoff_timeout=timedelta(seconds=4))
    fixture.handler.close_s = 50.0
    await seconds(10)
    if how == "end":
        fixture.pump.end(CloseReason.HANDED_OVER, within=timedelta(seconds=4))
    else:
        fixture.pump.lose()
        fixture.pump.lose()
    await seconds(3)
    before = "hold_overdue" in caplog.text
    await seconds(2)

    assert (before, caplog.text.count("hold_overdue")) == (False, 1)
    assert (await fixture.ended())[1] == 60.0


@virtual
async def test_a_pump_that_ends_while_it_waits_calls_nothing():
    """For the trust in its lease, or for its handler to be ready: no ``drain`` without ``hold``."""
    for is_ready in (True, False):
        fixture = PumpFixture()
        fixture.trusted_until_s = -1.0
        if not is_ready:
            fixture.ready.clear()
        await seconds(10)
        fixture.pump.end(CloseReason.HANDED_OVER)

        assert await fixture.running is CloseReason.HANDED_OVER
        assert fixture.calls == []


@virtual
async def test_without_trust_hold_is_suspended_and_called_again_with_it(caplog):
    """That is no failure: there is no back-off."""
    fixture = PumpFixture()
    fixture.trusted_until_s = 10.0
    await seconds(15)
    shown = fixture.pump.statistics()
    fixture.trusted_until_s = 50.0
    await seconds(45)

    assert (shown.is_trusted, shown.failing_seconds, shown.error) == (False, 0.0, None)
    assert [call for call, _ in fixture.calls[:3]] == ["hold", "cancelled", "hold"]
    assert fixture.calls[1][1] == 10.0
    assert fixture.calls[2][1] <= 15.05
    counters = fixture.pump.counters
    assert (counters.hold_count, counters.suspended_count, counters.hold_error_count) == (2, 2, 0)
    assert "hold_suspended" in caplog.text
    fixture.pump.lose()
    await fixture.running


@virtual
async def test_after_each_failure_in_a_row_the_wait_is_longer(caplog):
    """Returning is a failure too; the first one is logged as an error."""
    await seconds(100)
    fixture = PumpFixture()
    fixture.handler.holds = [OSError("one"), 1.0, TimeoutError("three")]
    await seconds(4.5)
    shown = fixture.pump.statistics()
    await seconds(20)

    began_s = [at_s - 100 for call, at_s in fixture.calls if call == "hold"]
    assert began_s == [0.0, 3.0, 8.0, 15.0]
    assert (shown.error, shown.failing_seconds) == (
        "HoldReturnedError('hold returned although the resource is still held')",
        4.5,
    )
    assert shown.counters.hold_count == 2
    records = [r for r in caplog.records if r.msg == "hold_failed" or "hold_failed" in r.message]
    assert [r.levelno for r in records] == [logging.ERROR, logging.WARNING, logging.WARNING]
    assert [r.exc_info is None for r in records] == [False, True, False]
    assert [r.failure_count for r in records] == [1, 2, 3]
    assert fixture.pump.counters.hold_error_count == 3
    fixture.pump.lose()
    await fixture.running


@virtual
async def test_a_call_that_lasts_makes_up_for_earlier_failures():
    """The next wait is the first again; statistics show no error while it lasts."""
    fixture = PumpFixture()
    fixture.handler.holds = [OSError("one"), OSError("two"), 20.0]
    await seconds(8 + 9.9)
    before = fixture.pump.statistics()
    await seconds(0.1)
    after = fixture.pump.statistics()
    await seconds(15)

    assert before.error == "OSError('two')"
    assert before.failing_seconds == pytest.approx(17.9)
    assert (after.error, after.failing_seconds) == (None, 0.0)
    assert [at_s for call, at_s in fixture.calls if call == "hold"] == [0.0, 3.0, 8.0, 30.0]
    fixture.pump.lose()
    await fixture.running


@virtual
async def test_failures_that_are_far_apart_are_no_row(caplog):
    """A resource that was held for longer than ``failover_timeout`` is not given up for one."""
    fixture = PumpFixture(failover_timeout=timedelta(seconds=15))
    fixture.handler.holds = [OSError("one"), 20.0]
    await seconds(24)
    shown = fixture.pump.statistics()
    await seconds(2)

    assert shown.failing_seconds == 1.0
    assert [at_s for call, at_s in fixture.calls if call == "hold"] == [0.0, 3.0, 25.0]
    records = [r for r in caplog.records if r.msg == "hold_failed" or "hold_failed" in r.message]
    assert [r.failure_count for r in records] == [1, 1]
    fixture.pump.lose()
    await fixture.running


@virtual
async def test_an_outage_of_the_store_is_no_failure_of_hold():
    """A failure before it and one after it are not in a row."""
    fixture = PumpFixture(failover_timeout=timedelta(seconds=15))
    fixture.handler.holds = [OSError("one"), 1000.0, OSError("two")]
    fixture.trusted_until_s = 8.0
    await seconds(400)
    fixture.trusted_until_s = float("inf")
    await seconds(2)

    assert not fixture.running.done()
    assert fixture.pump.statistics().failing_seconds < 3
    fixture.pump.lose()
    await fixture.running


@virtual
async def test_a_resource_that_fails_for_failover_timeout_is_given_up():
    """Counted from the first failure in a row."""
    fixture = PumpFixture(failover_timeout=timedelta(seconds=8))
    fixture.handler.holds = [OSError("x")] * 9

    assert await fixture.ended() == (CloseReason.STALLED, 9.0)
    assert len(fixture.calls) == 3


@virtual
async def test_a_failure_while_it_ends_is_no_failure():
    """The reason of the end counts, and nothing is called again."""

    class Failing(StubHandler):
        async def hold(self, held):
            try:
                await super().hold(held)
            except asyncio.CancelledError:
                raise OSError("cannot close") from None

    fixture = PumpFixture()
    fixture.pump._handler = Failing()
    await seconds(10)
    fixture.pump.end(CloseReason.HANDED_OVER)

    assert (await fixture.ended())[0] is CloseReason.HANDED_OVER
    assert fixture.pump.counters.hold_error_count == 0


@virtual
async def test_an_end_in_the_wait_after_a_failure_ends_at_once():
    """There is nothing to drain."""
    fixture = PumpFixture()
    fixture.handler.holds = [OSError("x")]
    await seconds(2)
    fixture.pump.end(CloseReason.HANDED_OVER)

    assert await fixture.ended() == (CloseReason.HANDED_OVER, 2.0)
    assert [call for call, _ in fixture.calls] == ["hold"]


@virtual
async def test_a_hold_that_returns_while_it_is_drained_ends_the_drain():
    """It has done what ``drain`` would wait for. A planned end is no suspension, and no failure."""
    fixture = PumpFixture()
    fixture.handler.holds, fixture.handler.drain_s = [12.0], 20.0
    await seconds(10)
    held = fixture.handler.held
    fixture.pump.end(CloseReason.HANDED_OVER)

    assert await fixture.ended() == (CloseReason.HANDED_OVER, 12.0)
    await seconds(30)
    assert [call for call, _ in fixture.calls] == ["hold", "drain", "return"]
    counters = fixture.pump.counters
    assert (counters.hold_count, counters.suspended_count, counters.hold_error_count) == (1, 0, 0)
    assert not held.is_held


@virtual
async def test_a_cancelled_error_of_the_users_own_is_a_failure():
    """Nobody cancelled the pump."""

    class Cancelled(StubHandler):
        async def hold(self, held):
            self.note("hold")
            raise asyncio.CancelledError

    fixture = PumpFixture()
    fixture.pump._handler = fixture.handler = Cancelled()
    await seconds(1)

    assert fixture.pump.counters.hold_error_count == 1
    assert not fixture.running.done()
    fixture.pump.lose()
    await fixture.running


@virtual
async def test_a_hold_that_ends_in_time_is_not_logged_as_overdue(caplog):
    """Not later either."""
    fixture = PumpFixture()
    await seconds(10)
    fixture.pump.end(CloseReason.HANDED_OVER, within=timedelta(seconds=20))
    await fixture.running
    await seconds(60)

    assert not [r for r in caplog.records if vars(r).get("event") == "hold_overdue"]
