"""A guard against events that kill, whose events are handled at once."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from math import inf
from types import SimpleNamespace
from typing import Any

from eventproc._base.logs import get_logger
from eventproc._delivery.crash_guard import CrashGuard
from eventproc._delivery.links import Links, QueueLinks
from eventproc._delivery.scope import PartitionIdentity, PartitionScope
from eventproc._group.pumps.stop_scope import StoppedError, StopScope
from eventproc.models import Isolation, LastEnqueued, ReceivedEvent, alone
from eventproc.models._statistics import DeliveryCounters
from eventproc.sources.memory import MemoryEventSource
from tests.scenarios.fake_queue import FakeQueues
from tests.scenarios.group_setup import Setup
from tests.unit.eventproc._core.events import events, numbers
from tests.unit.eventproc._delivery.checkpoint_fixture import CheckpointFixture

LIMIT = 5


class Queues(FakeQueues):
    """Queues that tell new messages apart."""

    new_from: float = inf

    def was_delivered(self, event: ReceivedEvent) -> bool:
        """Tell by the number."""
        return event.sequence_number < self.new_from


AT_LIMIT = alone(LIMIT - 1)  # One death before was in a batch or a part.


class GuardFixture:
    """A guard whose events are handled at once, and what is stored at the time of each delivery."""

    def __init__(
        self,
        found: Isolation,
        *,
        newest: int | None = None,
        unsettled_max: int | None = None,
        new_from: float = inf,
    ) -> None:
        self.setup = Setup()
        self.checkpoints = CheckpointFixture(self.setup)
        self.checkpointer = self.checkpoints.checkpointer("a")
        self.progress = self.checkpointer.progress
        self.stop = StopScope(lambda: inf)
        identity = PartitionIdentity(partition_id="0", group=self.setup.group, owner_id="a")
        links = Links(MemoryEventSource(self.setup.hub), identity)
        if unsettled_max is not None:
            queues = Queues({}, prefetch=unsettled_max)
            queues.new_from = new_from
            links = QueueLinks(queues, identity)
        end = None
        if newest is not None:
            end = LastEnqueued(sequence_number=newest, offset="", enqueued_time=None)
        link: Any = SimpleNamespace(
            delivered_through=lambda events: links.delivered_through(events, end),
            until_settled=self._settle,
        )
        lanes: Any = SimpleNamespace(take_until_done=self._hand, give_up=self._give_up)
        self.guard = CrashGuard(
            link,
            lanes,
            self.checkpointer,
            scope=PartitionScope(
                identity=identity,
                stop=self.stop,
                counters=DeliveryCounters(),
                log=get_logger("eventproc.test"),
            ),
            deliveries_max=LIMIT,
        )
        self._found = found
        self.parts: list[list[int]] = []
        self.isolations: list[Isolation | None] = []
        self.given_up: list[tuple[int, int]] = []
        self.fails_at: int | None = None
        self.at_delivery: Callable[[], object] = lambda: None

    async def open(self, *, is_position_known: bool = True) -> None:
        """Adopt the partition, after event 0 and with the isolation that was found."""
        await self.checkpoints.store.open()
        await self.checkpoints.adopt(self.checkpointer)
        if is_position_known:
            self.progress.pin(0, "o0")
        self.progress.set_isolation(self._found)

    async def deliver(self, delivered: Iterable[int]) -> None:
        """Receive these events together, and pass them to the guard."""
        await self.guard.deliver(self.progress.admit(events(delivered)))

    async def _settle(self) -> None:
        """The service knows at once what is stored."""

    async def _hand(self, part):
        self.at_delivery()
        self.parts.append(numbers(part))
        checkpoint = self.setup.checkpoint()
        self.isolations.append(None if checkpoint is None else checkpoint.isolation)
        if self.fails_at in numbers(part):
            raise StoppedError
        self.progress.done(part)

    async def _give_up(self, event: ReceivedEvent, delivery_count: int) -> None:
        self.given_up.append((event.sequence_number, delivery_count))
        if self.fails_at == event.sequence_number:
            raise StoppedError
        self.progress.done([event])

    def sizes(self) -> list[int]:
        """Return how many events each delivery had."""
        return [len(part) for part in self.parts]


@asynccontextmanager
async def guarded(found: Isolation, *, newest: int | None = None) -> AsyncIterator[GuardFixture]:
    """Open a guard of partition 0, and check that no event was lost or delivered twice."""
    fixture = GuardFixture(found, newest=newest)
    await fixture.open()
    yield fixture
    delivered = [number for part in fixture.parts for number in part]
    given_up = [number for number, _ in fixture.given_up]
    assert given_up + delivered == list(range(1, len(given_up + delivered) + 1))
