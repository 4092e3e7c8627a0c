"""Receiving over one link after the other: which errors a partition survives."""

from datetime import timedelta
from math import inf

from eventproc.errors import (
    ReceiverDisplacedError,
    SourceError,
    SourceRejectedError,
    StoreUnavailableError,
)
from eventproc.logs import get_logger
from eventproc.models import EventPosition
from eventproc.partition.flow_control import PauseSwitch
from eventproc.partition.reader import REJECTIONS_MAX, PartitionReader
from eventproc.partition.scope import PartitionIdentity, PartitionScope
from eventproc.partition.stop_scope import StopScope
from eventproc.ports import PartitionReceiver
from eventproc.sources.memory import MemoryEventSource
from eventproc.statistics import DeliveryCounters
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Scene
from tests.unit.eventproc.core.events import event


class ShortLink(PartitionReceiver):
    """Delivers one event, and then fails."""

    last_enqueued = None

    def __init__(self, number: int, error: SourceError) -> None:
        self._events = [event(number)]
        self._error = error

    async def receive(self, *, events_max, wait_max):
        """Return the event, or raise the error."""
        if not self._events:
            raise self._error
        return [self._events.pop()]

    async def close(self):
        """Do nothing."""


class ShortLinks(MemoryEventSource):
    """Opens links that deliver one event each."""

    def __init__(self, scene: Scene, error: SourceError) -> None:
        super().__init__(scene.hub)
        self._error = error
        self._opened_count = 0

    async def open_receiver(self, consumer_group, partition_id, position):
        """Open the next link."""
        self._opened_count += 1
        return ShortLink(self._opened_count, self._error)


async def no_answer() -> bool:
    """Verify a lease while the store is out."""
    raise StoreUnavailableError("no answer")


async def received(error: SourceError, count: int) -> list[int]:
    """Return the numbers of the first events that come over links which fail with this error."""
    scene = Scene()
    reader = PartitionReader(
        ShortLinks(scene, error),
        scope=PartitionScope(
            identity=PartitionIdentity(partition_id="0", group=scene.group, owner_id="a"),
            stop=StopScope(lambda: inf),
            counters=DeliveryCounters(),
            log=get_logger("eventproc.test"),
        ),
        pause_switch=PauseSwitch(),
        verify=no_answer,
        wait_s=lambda _: 1.0,
    )
    numbers = []
    for _ in range(count):
        events = await reader.next(EventPosition.earliest, 10, timedelta(seconds=60))
        numbers += [each.sequence_number for each in events]
    return numbers


def test_refusals_with_events_between_them_do_not_end_the_partition():
    """Only refusals in a row show that a retry does not help, not those of a long life."""
    count = 2 * REJECTIONS_MAX

    assert run_virtual(received(SourceRejectedError("no right"), count)) == [*range(1, count + 1)]


def test_a_displaced_receiver_is_opened_again_if_the_store_does_not_answer():
    """Nothing shows that the partition is lost; the lease says for how long it may be served."""
    assert run_virtual(received(ReceiverDisplacedError("taken"), 3)) == [1, 2, 3]
