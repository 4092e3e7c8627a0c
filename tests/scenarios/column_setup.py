"""A hub whose receivers return batches, and a handler that notes the rows that it gets."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from eventproc import Backoff, CloseReason, FailureAction, FailurePolicy, PartitionHandler, RowError
from eventproc.models import ReceivedEvent
from eventproc.sources.memory import MemoryEventSource
from eventproc.sources.memory._source import MemoryReceiver
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup, seconds, source_of
from tests.unit.eventproc._core.batches import CountingBatch

QUICK = Backoff(initial=timedelta(seconds=0.1), maximum=timedelta(seconds=1))
TWO_THEN_LETTER = FailurePolicy(attempts_max=2, action=FailureAction.DEAD_LETTER)


class BatchReceiver(MemoryReceiver):
    """Returns batches of events that are not made yet, once it knows that columns are wanted."""

    takes_columns = False
    made: list[int]

    def read_columns(self, **_: object) -> None:
        """Return batches from now on."""
        self.takes_columns = True

    async def receive(self, *, events_max: int, wait_max: timedelta) -> Sequence[ReceivedEvent]:
        """Return a batch, if that is wanted."""
        events = await super().receive(events_max=events_max, wait_max=wait_max)
        return CountingBatch(events, self.made) if events and self.takes_columns else events


class BatchSource(MemoryEventSource):
    """Opens such receivers."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup.hub)
        self._setup_hub = setup.hub
        self.receivers: list[BatchReceiver] = []
        self.made: list[int] = []

    async def open_receiver(self, consumer_group, partition_id, position):
        """Open one."""
        link = self._setup_hub._attach(consumer_group, partition_id, position)
        receiver = BatchReceiver(self._setup_hub, link)
        receiver.made = self.made
        self.receivers.append(receiver)
        return receiver


class BatchSetup(Setup):
    """A setup whose source knows of columns."""

    def make_source(self):
        """Make the source of a processor."""
        return BatchSource(self)

    def state(self) -> bytes | None:
        """The state in the stored checkpoint."""
        stored = self.checkpoint()
        return None if stored is None else stored.state


class Rows(PartitionHandler):
    """Records the rows that it gets; fails for those of ``bad``."""

    columns: Sequence[str] = ("sequenceNumber", "body")
    bad: frozenset[int] = frozenset()
    names_rows = False

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.calls: list[list[int]] = []
        self.errors: list[Exception] = []
        self.closed: list[CloseReason] = []

    async def process_columns(self, context, columns):
        """Count the rows into the state; then fail, or record them."""
        assert columns.schema.names == list(self.columns)
        numbers = columns.column("sequenceNumber").to_pylist()
        self.calls.append(numbers)
        failed = [row for row, number in enumerate(numbers) if number in self.bad]
        good = len(numbers) - len(failed)
        context.state = str(int(context.state or b"0") + good).encode()
        if failed and self.names_rows:
            self.note([n for n in numbers if n not in self.bad], context)
            raise RowError(*failed) from ValueError("cannot read")
        if failed:
            raise ValueError("cannot read")
        self.note(numbers, context)

    def note(self, numbers, context):
        """Record what is handled."""
        self.setup.handled += [(context.partition_id, number) for number in numbers]

    async def process_error(self, context, error):
        """Record the error."""
        self.errors.append(error)

    async def close(self, context, reason):
        """Record the reason."""
        self.closed.append(reason)


def served(
    handler_class: Any = Rows, *, count: int, for_s: float = 60, sink=None, **settings: Any
) -> tuple[BatchSetup, Any, BatchSource, Any]:
    """Serve events; return the setup, the handler, the source and the statistics."""

    async def scenario():
        setup, handlers = BatchSetup(), []
        setup.publish(count)

        def make():
            handlers.append(handler_class(setup))
            return handlers[-1]

        processor = setup.processor(
            make,
            sink=sink,
            **{"batch_size_max": 10_000, "handler_backoff": QUICK, **settings},
        )
        source = source_of(processor)
        async with processor:
            await seconds(for_s)
            statistics = processor.statistics()
        return setup, handlers[0], source, statistics

    result: tuple[BatchSetup, Any, BatchSource, Any] = run_virtual(scenario())
    return result
