"""The handler's calls: retried in place when they fail, with state that counts nothing twice."""

import asyncio
from datetime import timedelta
from itertools import pairwise

import pytest

from eventproc import Backoff, CheckpointPolicy, FailureAction, FailurePolicy, StateTooLargeError
from eventproc.models import STATE_BYTES_MAX
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds
from tests.unit.eventproc._delivery.pump_fixture import PumpFixture

MANUAL = CheckpointPolicy.manual()
QUICK = Backoff(initial=timedelta(seconds=1), maximum=timedelta(seconds=4))


async def test_a_failed_batch_is_retried_in_place_and_in_order():
    """Waits grow, ``process_error`` is called each time, and later events come after it."""
    setup = Setup()
    times, errors = [], []

    class Failing(Noting):
        async def process_events(self, context, events):
            times.append(asyncio.get_running_loop().time())
            if len(times) <= 4:
                raise RuntimeError(len(times))
            await super().process_events(context, events)

        async def process_error(self, context, error):
            errors.append(error.args[0])

    setup.publish(3)
    async with setup.processor(lambda: Failing(setup), handler_backoff=QUICK):
        await seconds(1)
        setup.publish(2)
        await seconds(30)

    waits = [later - earlier for earlier, later in pairwise(times)][:4]

    assert setup.numbers() == [0, 1, 2, 3, 4]
    assert errors == [1, 2, 3, 4]
    for wait, whole in zip(waits, [1, 2, 4, 4], strict=True):
        assert whole / 2 <= wait <= whole + 0.001


def test_a_failed_initialize_is_reported_and_repeated_after_growing_waits(caplog):
    """``process_error`` gets each error; the log has how many calls it took in the end."""

    async def scenario():
        setup = Setup()
        times, errors = [], []

        class Slow(Noting):
            async def initialize(self, context):
                times.append(asyncio.get_running_loop().time())
                if len(times) <= 4:
                    raise RuntimeError(len(times))

            async def process_error(self, context, error):
                errors.append(error.args[0])

        async with setup.processor(lambda: Slow(setup), handler_backoff=QUICK):
            await seconds(30)
        return times, errors

    caplog.set_level("INFO")
    times, errors = run_virtual(scenario())
    found = [vars(record) for record in caplog.records]

    assert errors == [1, 2, 3, 4]
    assert [f["attempt_count"] for f in found if f.get("event") == "handler_recovered"] == [5]
    for (earlier, later), whole in zip(pairwise(times), [1, 2, 4, 4], strict=True):
        assert whole / 2 <= later - earlier <= whole + 0.001


async def test_an_error_in_process_error_does_not_prevent_the_retry():
    """It is logged, and the batch is delivered again."""
    setup = Setup()

    class FailingTwice(Noting):
        failed = False

        async def process_events(self, context, events):
            if not self.failed:
                self.failed = True
                raise RuntimeError
            await super().process_events(context, events)

        async def process_error(self, context, error):
            raise ValueError

    setup.publish(2)
    async with setup.processor(lambda: FailingTwice(setup)):
        await seconds(5)

    assert setup.numbers() == [0, 1]


async def test_events_checkpointed_in_a_failed_call_are_not_delivered_again():
    """``context.checkpoint(event)`` says that everything up to the event is handled."""
    setup = Setup()

    class Half(Noting):
        failed = False

        async def process_events(self, context, events):
            await super().process_events(context, events[:2])
            await context.checkpoint(events[:2][-1])
            if not self.failed:
                self.failed = True
                raise RuntimeError
            await super().process_events(context, events[2:])

    setup.publish(4)
    async with setup.processor(lambda: Half(setup)):
        await seconds(5)

    assert setup.numbers() == [0, 1, 2, 3]


class Counting(Noting):
    """Counts events in its state; the next ``fails`` calls raise after that."""

    fails = 0

    async def process_events(self, context, events):
        """Count, then perhaps fail."""
        for _ in events:
            context.state = str(int(context.state or b"0") + 1).encode()
        if Counting.fails:
            Counting.fails -= 1
            raise RuntimeError
        await super().process_events(context, events)


async def test_state_that_a_failed_call_set_is_discarded():
    """Its events are delivered again and must not be counted twice."""
    setup = Setup()
    Counting.fails = 3
    setup.publish(5)
    async with setup.processor(lambda: Counting(setup)):
        await seconds(10)

    checkpoint = setup.checkpoint()

    assert (checkpoint.sequence_number, checkpoint.state) == (4, b"5")
    assert checkpoint.state_sequence_number == 4


async def test_a_checkpoint_during_a_call_has_position_and_state_of_the_call_before():
    """Without an event it covers nothing of the present batch, and neither does its state."""
    setup = Setup()
    stored = []

    class CheckpointingFirst(Noting):
        async def process_events(self, context, events):
            context.state = str(int(context.state or b"0") + len(events)).encode()
            await context.checkpoint()
            stored.append(setup.checkpoint())
            await super().process_events(context, events)

    async with setup.processor(lambda: CheckpointingFirst(setup), checkpoint_policy=MANUAL):
        for _ in range(2):
            setup.publish(3)
            await seconds(15)

    first, second = stored

    assert (first.sequence_number, first.state) == (-1, None)
    assert (second.sequence_number, second.state) == (2, b"3")


async def test_setting_state_that_is_too_large_raises_at_once():
    """In the handler's call, not at some later checkpoint."""
    setup = Setup()
    errors = []

    class TooLarge(Noting):
        async def process_events(self, context, events):
            context.state = b"x" * (STATE_BYTES_MAX + 1)

        async def process_error(self, context, error):
            errors.append(error)

    setup.publish(1)
    async with setup.processor(lambda: TooLarge(setup)):
        await seconds(0.5)

    assert isinstance(errors[0], StateTooLargeError)


def called_at(*outcomes: Exception | None, **settings) -> list[float]:
    """When the handler is called with two events, if its calls have these outcomes in turn."""

    async def scenario():
        setup = Setup()
        times: list[float] = []

        class Failing(Noting):
            async def process_events(self, context, events):
                times.append(asyncio.get_running_loop().time())
                outcome = outcomes[len(times) - 1]
                if outcome is not None:
                    raise outcome

        setup.publish(2)
        async with setup.processor(lambda: Failing(setup), handler_backoff=QUICK, **settings):
            await seconds(30)
        return times

    return run_virtual(scenario())


def test_the_back_off_begins_anew_after_an_event_is_done():
    """Failures before it say nothing of the next event."""
    called_s = called_at(RuntimeError(), None, RuntimeError(), None)

    assert [later - earlier <= 1.001 for earlier, later in pairwise(called_s)] == [True] * 3
    assert called_s[3] - called_s[2] >= 0.5


def test_after_an_event_is_given_up_the_next_one_is_delivered_at_once():
    """There is nothing to wait for: the failed event is not tried again."""
    policy = FailurePolicy(attempts_max=1, action=FailureAction.SKIP)
    called_s = called_at(RuntimeError(), RuntimeError(), None, failure_policy=policy)
    first_s, second_s, third_s = called_s

    assert second_s - first_s >= 0.5
    assert third_s - second_s < 0.01


@pytest.mark.parametrize(
    ("batch", "failures", "retried"),
    [(1, 2, 2), (4, 1, 4), (4, 2, 4 + 1)],  # The second call has the first event alone.
)
async def test_only_events_that_are_delivered_again_are_counted_as_retried(
    batch, failures, retried
):
    """Those of the first batch, at each failed call; those of the second one are delivered once."""
    fixture = PumpFixture()
    process, errors = fixture.handler.process_events, [RuntimeError()] * failures

    async def fail_twice(context, events):
        if errors:
            raise errors.pop()
        await process(context, events)

    fixture.handler.process_events = fail_twice  # type: ignore[method-assign]
    running = await fixture.start()
    for _ in range(2):
        fixture.setup.publish(batch)
        await seconds(30)
    await running.end()

    assert (fixture.setup.numbers(), running.pump.counters.retried_count) == (
        [*range(2 * batch)],
        retried,
    )


async def test_a_call_that_the_loss_of_the_partition_cancels_is_not_logged_as_ended_by_a_stop(
    caplog,
):
    """That log event says that the next owner gets the events because the stop took too long."""
    fixture = PumpFixture()
    fixture.handler.call_s = 50
    fixture.setup.publish(2)
    running = await fixture.start()
    running.pump.lose()
    await running.ended()

    assert len(fixture.handler.cut_at_s) == 1
    assert "handler_cancelled" not in [vars(record).get("event") for record in caplog.records]
