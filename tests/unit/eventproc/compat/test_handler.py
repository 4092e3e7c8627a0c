"""Which callback is called with what, and how long a partition waits after one has failed."""

from types import SimpleNamespace
from typing import Any

import pytest
from azure.eventhub import CloseReason as AzureCloseReason

from eventproc._delivery.handler import BatchError
from eventproc.compat._caller import LoopCaller
from eventproc.compat._handler import CallbackHandler
from eventproc.compat._partition import Partition
from eventproc.compat._receive import callbacks_of
from eventproc.models import CloseReason
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


@pytest.mark.parametrize("takes_batches", [False, True])
async def test_after_a_callback_raised_no_event_of_its_call_counts_as_handled(takes_batches):
    """So all of them come again, as with Azure's client after its restart."""
    checkpoints: Any = None
    context: Any = SimpleNamespace(partition_id="0", is_ending=False)
    partition = Partition("0", checkpoints)

    async def fail(*_: Any) -> None:
        raise KeyError("no such order")

    callbacks = callbacks_of(fail, {}, LoopCaller(), takes_batches=takes_batches)
    handler = CallbackHandler(callbacks, lambda _: (partition, None), clock=lambda: 0.0)
    first, *others = events([5, 6, 7])
    with pytest.raises(BatchError) as raised:
        await handler.process_events(context, [first, *others])

    assert [event for event, _ in raised.value.failed] == [first]
    assert list(raised.value.untried) == others


class Program:
    """Callbacks that note their calls, and the handler that makes them."""

    def __init__(self, *, takes_batches: bool = False) -> None:
        checkpoints: Any = SimpleNamespace(begin=lambda _: None)
        self.seen: list[tuple[object, ...]] = []
        self.partition = Partition("0", checkpoints)
        self.context: Any = SimpleNamespace(partition_id="0", is_ending=False, is_owned=True)
        names = ("on_error", "on_partition_initialize", "on_partition_close")
        options: Any = {name: self.noting(name) for name in names}
        callbacks = callbacks_of(
            self.noting("on_events"), options, LoopCaller(), takes_batches=takes_batches
        )
        self.handler = CallbackHandler(
            callbacks, lambda _: (self.partition, "context"), clock=lambda: 0.0
        )

    def noting(self, name: str) -> Any:
        async def note(context: object, *args: object) -> None:
            assert context == "context"
            self.seen.append((name, *args))
            if name == "on_partition_initialize":
                raise KeyError("not ready")

        return note


async def test_an_error_in_on_partition_initialize_is_told_and_ends_nothing():
    program = Program()
    await program.handler.initialize(program.context)

    (begun, (name, error)) = program.seen
    assert (begun, name) == (("on_partition_initialize",), "on_error")
    assert isinstance(error, KeyError)
    assert program.partition.is_owned


@pytest.mark.parametrize(("takes_batches", "nothing"), [(False, None), (True, [])])
async def test_without_events_the_callback_gets_none_or_an_empty_batch(takes_batches, nothing):
    program = Program(takes_batches=takes_batches)
    await program.handler.on_idle(program.context)

    assert program.seen == [("on_events", nothing)]


@pytest.mark.parametrize("reason", CloseReason)
async def test_only_a_stop_of_this_process_is_azures_shutdown(reason):
    """Azure's class has two reasons. Whatever else ends a partition, another process gets it."""
    program = Program()
    await program.handler.close(program.context, reason)

    is_stop = reason is CloseReason.SHUTDOWN
    azures = AzureCloseReason.SHUTDOWN if is_stop else AzureCloseReason.OWNERSHIP_LOST
    assert program.seen == [("on_partition_close", azures)]
