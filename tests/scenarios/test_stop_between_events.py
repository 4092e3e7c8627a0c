"""Closing a partition waits for the event under way, not for the rest of its batch."""

import asyncio
import threading
from collections import Counter

import pytest
from opentelemetry.trace import StatusCode

from eventproc import (
    BlockingPartitionContext,
    BlockingPartitionHandler,
    CheckpointPolicy,
    PartitionHandler,
)
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds, until
from tests.scenarios.opentelemetry_sdk import Sdk
from tests.unit.eventproc._delivery.test_handler_threads import SHORT

EVENT_COUNT = 100
MANUAL = CheckpointPolicy.manual()


class OneByOne(PartitionHandler):
    """Takes a second for each event, and counts it in its state."""

    def __init__(self, setup: Setup, has_state: bool = True) -> None:
        self.setup = setup
        self.has_state = has_state

    async def process_event(self, context, event):
        """Work on the event."""
        if self.has_state:
            context.state = str(int(context.state or 0) + 1).encode()
        await asyncio.sleep(1)
        self.setup.handled.append((context.partition_id, event.sequence_number))


@pytest.mark.parametrize("key_concurrency", [1, 3])
async def test_a_stop_takes_effect_between_two_events(key_concurrency):
    """Handled events are stored and counted, and the next owner gets the others, once."""
    setup = Setup()
    setup.publish(EVENT_COUNT)
    settings = {
        "key_concurrency": key_concurrency,
        "key_selector": lambda event: event.sequence_number % 3,
        "checkpoint_policy": MANUAL,
    }
    first = setup.processor(lambda: OneByOne(setup, key_concurrency == 1), **settings)
    await first.start()
    await seconds(10)
    begun_s = asyncio.get_running_loop().time()
    await first.stop()
    took_s = asyncio.get_running_loop().time() - begun_s
    handled, counted = len(setup.handled), first.statistics().counters.handled_count
    stored = setup.checkpoint()
    state = stored and stored.state
    async with setup.processor(lambda: OneByOne(setup, key_concurrency == 1), "b", **settings):
        await seconds(EVENT_COUNT + 10)

    assert took_s <= 3
    assert 0 < handled == counted < EVENT_COUNT
    assert key_concurrency > 1 or int(state) == handled
    assert set(Counter(setup.numbers()).values()) == {1}
    assert len(setup.numbers()) == EVENT_COUNT


async def test_a_hand_over_takes_effect_between_two_events():
    """A new processor need not wait for whole batches of the others."""
    setup = Setup(2)
    for partition_id in ("0", "1"):
        setup.publish(EVENT_COUNT, partition_id)
    async with setup.processor(lambda: OneByOne(setup)):
        await seconds(10)
        async with setup.processor(lambda: OneByOne(setup), "b") as second:
            await seconds(15)
            owned = second.statistics().owned

    assert len(owned) == 1
    assert set(Counter(setup.handled).values()) == {1}


async def test_a_call_of_process_events_is_not_interrupted():
    """Only its time is limited."""

    class Whole(Noting):
        async def process_events(self, context, events):
            await asyncio.sleep(10)
            await super().process_events(context, events)

    setup = Setup()
    setup.publish(EVENT_COUNT)
    processor = setup.processor(lambda: Whole(setup))
    await processor.start()
    await seconds(5)
    await processor.stop()

    assert (len(setup.handled), setup.checkpointed()) == (EVENT_COUNT, EVENT_COUNT - 1)


@pytest.mark.real_time
async def test_a_stop_takes_effect_between_two_events_of_a_blocking_handler():
    """Its thread checks before each event."""
    may_go_on = threading.Event()

    class Ordinary(BlockingPartitionHandler):
        def process_event(self, context, event):
            contexts.append(context)
            numbers.append(event.sequence_number)
            may_go_on.wait(20)

    contexts: list[BlockingPartitionContext] = []
    numbers: list[int] = []
    setup = Setup()
    setup.publish(EVENT_COUNT)
    processor = setup.processor(Ordinary, **SHORT)
    await processor.start()
    await until(lambda: numbers)
    stopping = asyncio.create_task(processor.stop())
    await until(lambda: contexts[0].is_ending)
    may_go_on.set()
    await stopping

    assert numbers == [0]
    assert setup.checkpointed() == 0


def test_an_end_between_two_events_does_not_count_as_a_failed_call():
    """Metrics and traces would otherwise show an error with every deployment."""
    sdk = Sdk()
    setup = sdk.setup()

    async def scenario():
        setup.publish(EVENT_COUNT)
        processor = setup.processor(lambda: OneByOne(setup))
        await processor.start()
        await seconds(5)
        await processor.stop()

    run_virtual(scenario())
    (point,) = sdk.points("messaging.process.duration")
    (span,) = sdk.spans("process hub")

    assert "error.type" not in point.attributes
    assert span.status.status_code is not StatusCode.ERROR
