"""The failure action STOP: a partition that stays owned and is not served."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import (
    CloseReason,
    EventProcessor,
    EventProcessorConfig,
    FailurePolicy,
    PartitionHandler,
)
from eventproc.sources.memory import MemoryEventSource
from tests.scenarios.group_setup import Noting, Setup, seconds
from tests.scenarios.test_failures import QUICK, Poisoned


async def test_a_stopped_partition_stays_owned_and_is_not_served():
    """So no other processor fails at its event. ``close`` gets the reason."""
    setup = Setup(partition_count=2)
    setup.publish(6, "0")
    setup.publish(6, "1")
    reasons: list[object] = []
    handlers: list[object] = []

    class Closing(Poisoned):
        def __init__(self):
            super().__init__(setup, Closing.bad)
            handlers.append(self)

        bad = frozenset({4})

        async def process_event(self, context, event):
            if context.partition_id == "0":
                await super().process_event(context, event)
            else:
                setup.handled.append(("1", event.sequence_number))

        async def close(self, context, reason):
            reasons.append((context.partition_id, reason))

    async with setup.processor(
        Closing, failure_policy=FailurePolicy(attempts_max=2), handler_backoff=QUICK
    ) as processor:
        await seconds(60)
        setup.publish(6, "1")
        await seconds(60)
        stopped = processor.statistics().stopped, setup.owners(), len(handlers)
        seen = setup.numbers("0"), setup.numbers("1"), setup.checkpointed("0"), reasons.copy()
        Closing.bad = frozenset()
        assert processor.resume("0")
        await seconds(15)
        after = processor.statistics().stopped, setup.numbers("0")

    assert stopped == (("0",), {"0": "a", "1": "a"}, 2)
    assert seen == ([0, 1, 2, 3], list(range(12)), 3, [("0", CloseReason.HANDLER_FAILED)])
    assert after == ((), [0, 1, 2, 3, 4, 5])


async def test_a_stopped_partition_is_released_when_its_processor_stops():
    """The next owner tries the event, and stops the partition, too."""
    setup = Setup()
    setup.publish(6)
    policy = FailurePolicy(attempts_max=2)
    handler = Poisoned(setup)
    first = setup.processor(
        lambda: handler,
        failure_policy=policy,
        handler_backoff=QUICK,
        shutdown_timeout=timedelta(5),
    )
    async with first:
        await seconds(30)
    owners = setup.owners()
    async with setup.processor(
        lambda: handler, "b", failure_policy=policy, handler_backoff=QUICK
    ) as second:
        await seconds(30)
        found = (owners, second.statistics().stopped, handler.attempts[4])

    assert found == ({"0": None}, ("0",), 4)


async def test_in_lanes_the_calls_of_other_keys_finish_before_the_stop():
    """Their progress is stored."""
    setup = Setup()
    for key in "ab":
        setup.hub.publish(b"", partition_id="0", partition_key=key)

    class Mixed(Noting):
        async def process_event(self, context, event):
            if event.partition_key == "a":
                raise ValueError
            await asyncio.sleep(5)
            setup.handled.append(("0", event.sequence_number))

        process_events = PartitionHandler.process_events

    async with setup.processor(
        lambda: Mixed(setup), key_concurrency=2, failure_policy=FailurePolicy(attempts_max=1)
    ) as processor:
        await seconds(30)
        stopped, numbers, checkpoint = (
            processor.statistics().stopped,
            setup.numbers(),
            setup.checkpoint(),
        )

    assert (stopped, numbers) == (("0",), [1])
    assert checkpoint.sequence_number == -1
    assert 1 in checkpoint.completed[0]


class SuppressesCancellation(MemoryEventSource):
    """Awaits other code that returns its result when the call is cancelled, as Azure's may."""

    async def partition_ids(self) -> Sequence[str]:
        """Return the ids after a second, or as soon as the call is cancelled."""
        found = await super().partition_ids()
        with suppress(asyncio.CancelledError):
            await seconds(1)
        return found


async def test_stop_ends_although_the_source_suppresses_the_cancellation():
    """The loop that reads the partition ids does not go on after a call that was cancelled."""
    setup = Setup()
    processor = EventProcessor(
        source=SuppressesCancellation(setup.hub),
        store=MemoryCheckpointStore(setup.account),
        handler=lambda: Noting(setup),
        config=EventProcessorConfig(
            uses_store_thread=False, partition_ids_interval=timedelta(seconds=10)
        ),
    )
    await processor.start()
    await seconds(10.5)
    async with asyncio.timeout(60):
        await processor.stop()
