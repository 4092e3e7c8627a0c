"""How long a partition waits after its callback failed."""

from types import SimpleNamespace
from typing import Any

import pytest

from eventproc._delivery.handler import BatchError
from eventproc.compat._caller import LoopCaller
from eventproc.compat._handler import CallbackHandler
from eventproc.compat._partition import Partition
from eventproc.compat._receive import callbacks_of
from tests.unit.eventproc._core.events import events


async def test_the_pause_after_a_failure_doubles_until_the_failed_event_is_handled():
    """From a second up to half a minute."""
    failing, pauses = True, list[float]()
    checkpoints: Any = None
    context: Any = SimpleNamespace(partition_id="0", is_ending=False)
    partition = Partition("0", checkpoints)

    async def on_event(_: Any, __: Any) -> None:
        if failing:
            raise KeyError("no such order")

    callbacks = callbacks_of(on_event, {}, LoopCaller(), takes_batches=False)
    handler = CallbackHandler(callbacks, lambda _: (partition, None), clock=lambda: 100.0)

    async def fail(number: int) -> None:
        with pytest.raises(BatchError):
            await handler.process_events(context, events([number]))
        pauses.append(partition.resume_at_s - 100.0)

    for _ in range(7):
        await fail(5)
    failing = False
    await handler.process_events(context, events([4, 5]))
    failing = True
    await fail(5)
    failing = False
    await handler.process_events(context, events([5, 6]))
    failing = True
    await fail(7)

    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30, 1]
