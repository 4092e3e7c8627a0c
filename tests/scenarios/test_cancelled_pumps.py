"""A pump that is cancelled ends, with all tasks that it started."""

import asyncio
import logging
from datetime import timedelta

import pytest

from eventproc import CloseReason, PartitionHandler
from eventproc.models import ReceivedEvent
from eventproc.testing._processes import run_processes
from tests.scenarios.group_setup import Noting, Setup, seconds

EVENT_COUNT = 200
LONG_S = 10_000.0


class Closing(Noting):
    """Takes a given time for each call, and records why it was closed."""

    def __init__(self, setup: Setup, call_s: float) -> None:
        super().__init__(setup)
        self.call_s = call_s
        self.reasons: list[CloseReason] = []

    async def process_events(self, context, events):
        """Sleep, then record every event."""
        await asyncio.sleep(self.call_s)
        await super().process_events(context, events)

    async def close(self, context, reason):
        """Record the reason."""
        self.reasons.append(reason)


def number_of(event: ReceivedEvent) -> int:
    """A key for each event."""
    return event.sequence_number


def pump_task() -> asyncio.Task:
    """The task that serves partition 0."""
    return next(task for task in asyncio.all_tasks() if task.get_name() == "pump-0")


async def serving(setup: Setup, handler: PartitionHandler, **settings):
    """Start a processor that is at work on a partition."""
    setup.publish(EVENT_COUNT)
    processor = setup.processor(
        lambda: handler, ownership_expiration=timedelta(seconds=30), batch_size_max=1, **settings
    )
    await processor.start()
    await seconds(5)
    return processor


@pytest.mark.parametrize("key_concurrency", [1, 3])
def test_a_pump_that_is_cancelled_while_its_lease_is_not_trusted_ends(key_concurrency):
    """Its lanes wait for a renewal that does not come, and it waits for its lanes."""

    async def scenario():
        setup = Setup()
        handler = Closing(setup, 1.0)
        processor = await serving(
            setup, handler, key_concurrency=key_concurrency, key_selector=number_of
        )
        setup.store_by_owner["a"].is_out = True
        await seconds(60)
        lapsed_count = len(setup.handled)
        pump = pump_task()
        pump.cancel()
        await asyncio.wait([pump], timeout=60)
        ended = pump.done()
        setup.store_by_owner["a"].is_out = False
        await processor.stop()
        return lapsed_count, ended, handler.reasons[0]

    lapsed_count, ended, reason = run_processes(scenario())

    assert 0 < lapsed_count < EVENT_COUNT
    assert ended
    assert reason is CloseReason.SHUTDOWN


def test_a_cancelled_pump_starts_no_further_call():
    """Not even for events queued in its lanes; calls under way are cancelled."""

    async def scenario():
        setup = Setup()
        handler = Closing(setup, 3.0)
        processor = await serving(setup, handler, key_concurrency=3, key_selector=number_of)
        before = len(setup.handled)
        pump = pump_task()
        pump.cancel()
        await asyncio.wait([pump])
        after = len(setup.handled)
        await processor.stop()
        return before, after

    before, after = run_processes(scenario())

    assert 0 < before == after


@pytest.mark.parametrize("key_concurrency", [1, 3])
def test_a_call_that_ignores_the_cancellation_of_its_pump_has_not_handled_its_events(
    key_concurrency,
):
    """Half of its work may be missing, so they come again."""

    class Returning(Noting):
        async def process_events(self, context, events):
            if events[0].sequence_number > 0:
                try:
                    await asyncio.sleep(LONG_S)
                except asyncio.CancelledError:
                    return
            await super().process_events(context, events)

    async def scenario():
        setup = Setup()
        processor = await serving(
            setup, Returning(setup), key_concurrency=key_concurrency, key_selector=number_of
        )
        pump = pump_task()
        pump.cancel()
        await asyncio.wait([pump])
        handled_count = processor.statistics().counters.handled_count
        await processor.stop()
        return handled_count, setup.checkpointed()

    handled_count, checkpointed = run_processes(scenario())

    assert handled_count == 1
    assert checkpointed in {None, 0}


def test_an_application_ends_when_all_its_tasks_are_cancelled():
    """As ``asyncio.run`` does at its end; here a handler ignores its cancellation."""

    class IgnoringCancellation(Noting):
        async def process_events(self, context, events):
            until_s = asyncio.get_running_loop().time() + 50
            while asyncio.get_running_loop().time() < until_s:
                try:
                    await asyncio.sleep(1)
                except asyncio.CancelledError:
                    continue

    async def scenario():
        setup = Setup()
        await serving(setup, IgnoringCancellation(setup), key_concurrency=3, key_selector=number_of)
        setup.store_by_owner["a"].is_out = True
        await seconds(30)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=200)
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert run_processes(scenario()) == set()


def test_a_cancelled_lane_restarts_its_pump():
    """Otherwise its events would never be done, and nothing would be received any more."""

    class Cancelling(Noting):
        has_cancelled = False

        async def process_events(self, context, events):
            task = asyncio.current_task()
            if events[0].sequence_number == 2 and not self.has_cancelled and task is not None:
                self.has_cancelled = task.cancel()
            await asyncio.sleep(0)
            await super().process_events(context, events)

    async def scenario():
        setup = Setup()
        handler = Cancelling(setup)
        processor = await serving(
            setup, handler, key_concurrency=3, key_selector=number_of, max_in_flight_events=5
        )
        await seconds(120)
        await processor.stop()
        return sorted(set(setup.numbers()))

    assert run_processes(scenario()) == list(range(EVENT_COUNT))


def test_a_timeout_error_raised_in_close_is_logged_as_a_failure(caplog):
    """It is not the end of ``shutdown_timeout``."""

    class TimingOut(Noting):
        async def close(self, context, reason):
            raise TimeoutError("of the database")

    async def scenario():
        setup = Setup()
        processor = await serving(setup, TimingOut(setup))
        await processor.stop()

    with caplog.at_level(logging.WARNING, "eventproc"):
        run_processes(scenario())

    logged = [record.getMessage() for record in caplog.records]

    assert any("handler_failed" in message for message in logged)
    assert not any("handler_abandoned" in message for message in logged)
