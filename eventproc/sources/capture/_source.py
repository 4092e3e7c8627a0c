"""A hub whose older events are in Capture files, as one ``EventSource``."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime

from eventproc._base.capture_names import FileNames, namespace_in_names
from eventproc._base.logs import get_logger
from eventproc._base.settings import checked
from eventproc.errors import ConfigurationError, SourceRejectedError
from eventproc.models import EventPosition, OffsetFormat, PartitionProperties, ReceivedEvent
from eventproc.ports import EventSource, PartitionReceiver
from eventproc.sources.capture._files import CaptureFiles
from eventproc.sources.capture._receiver import (
    SAME_TIME,
    CapturedReceiver,
    Start,
    first_in,
    lost,
)
from eventproc.sources.capture._search import IsBefore, PartitionFiles


class CapturedHub(EventSource):
    """Reads what the hub has deleted from Capture files, and goes on in the hub.

    Groups, checkpoints and handlers are those of the hub: an event has the same number and offset
    in both. A position that the hub still has is read there, and no file is opened.

    Args:
        live: The hub, over AMQP: an ``EventHubSource``. It is opened and closed with this source.
        capture: Its Capture files, likewise.
        skips_lost: What happens to events that neither has. By default it is an error: the
            partition is not served until they are found. ``True``: they are left out, and
            ``events_missing`` is logged.

    Raises:
        ConfigurationError: *live* has other numbers than the files.
    """

    @checked
    def __init__(
        self, live: EventSource, capture: CaptureFiles, *, skips_lost: bool = False
    ) -> None:
        if live.offset_format is not OffsetFormat.AMQP:
            raise ConfigurationError(
                f"Capture files have the offsets of AMQP, and {live!r} has others: read the event "
                "hub with an EventHubSource"
            )
        self._live = live
        self._capture = capture
        self._skips_lost = skips_lost
        namespace = namespace_in_names(live.fully_qualified_namespace)
        self._names = FileNames(capture.name_format, namespace, live.eventhub_name)
        self._log = get_logger("eventproc.sources.capture", eventhub_name=live.eventhub_name)
        self._files: dict[str, PartitionFiles] = {}
        self._receivers: list[CapturedReceiver] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._live!r}, {self._capture!r})"

    @property
    def fully_qualified_namespace(self) -> str:
        return self._live.fully_qualified_namespace

    @property
    def eventhub_name(self) -> str:
        return self._live.eventhub_name

    @property
    def descriptors_per_partition(self) -> int:
        return self._live.descriptors_per_partition + 1

    @property
    def created_at(self) -> datetime | None:
        return self._live.created_at

    async def open(self) -> None:
        async with AsyncExitStack() as stack:
            await self._capture.open()
            stack.push_async_callback(self._capture.close)
            await self._live.open()
            stack.pop_all()

    async def close(self) -> None:
        async with AsyncExitStack() as stack:  # Each is closed, also if another one fails.
            stack.push_async_callback(self._capture.close)
            stack.push_async_callback(self._live.close)
            for receiver in self._receivers:
                stack.push_async_callback(receiver.close)
            self._receivers.clear()

    async def check_consumer_group(self, name: str) -> None:
        await self._live.check_consumer_group(name)

    async def partition_ids(self) -> Sequence[str]:
        return await self._live.partition_ids()

    async def partition_properties(self, partition_id: str) -> PartitionProperties:
        (properties,) = await self.properties_of([partition_id])
        return properties

    async def properties_of(self, partition_ids: Sequence[str]) -> Sequence[PartitionProperties]:
        found = await self._live.properties_of(partition_ids)
        return [await self._with_files(properties) for properties in found]

    async def _with_files(self, properties: PartitionProperties) -> PartitionProperties:
        """Return the properties with the first event of the files, if it is lower."""
        first = await self._files_of(properties.partition_id).first(skips_damaged=True)
        if first is None or first[1].sequence_number >= first_in(properties):
            return properties
        return replace(
            properties, beginning_sequence_number=first[1].sequence_number, is_empty=False
        )

    async def open_receiver(
        self, consumer_group: str, partition_id: str, position: EventPosition
    ) -> PartitionReceiver:
        properties = await self._live.partition_properties(partition_id)
        number, live_first = _first_wanted(position), first_in(properties)
        start = None
        if not position.is_latest and (number is None or number < live_first):
            start = await self._start(partition_id, position, number, live_first)
        if number is not None:
            first = live_first if start is None else start.first
            if 0 < number < first and not self._skips_lost:
                where = "no file has them" if start is None else f"files begin with {first}"
                raise lost(partition_id, number, first, where, live_first)
            number = max(number, first)
        receiver = CapturedReceiver(
            self._live,
            consumer_group,
            self._files_of(partition_id),
            position,
            properties=properties,
            number=number,
            skips_lost=self._skips_lost,
            log=self._log.bind(partition_id=partition_id),
        )
        await receiver.begin(start)
        self._receivers = [known for known in self._receivers if not known.is_over]
        self._receivers.append(receiver)
        return receiver

    def _files_of(self, partition_id: str) -> PartitionFiles:
        if partition_id not in self._files:
            self._files[partition_id] = PartitionFiles(self._capture, self._names, partition_id)
        return self._files[partition_id]

    async def _start(
        self, partition_id: str, position: EventPosition, number: int | None, live_first: int
    ) -> Start | None:
        """Return where to begin in the files; ``None`` to begin in the hub."""
        is_before = _is_before(position, number)
        if is_before is None:
            return None
        files = self._files_of(partition_id)
        file = await files.find(is_before)
        if file is None:
            self._log.warning("capture_missing", partition_id=partition_id, prefix=files.place)
            return None
        first = await files.first(skips_damaged=True)
        if first is None or first[1].sequence_number >= live_first:
            return None
        self._check_age(await files.first_event(file), file.name)
        return Start(file=file, first=first[1].sequence_number, is_before=is_before)

    def _check_age(self, event: ReceivedEvent | None, name: str) -> None:
        """Refuse events that are older than the hub, unless ``since`` says that they are its own.

        Raises:
            SourceRejectedError: the file is of a hub that was deleted.
        """
        created_at = self._live.created_at
        if event is None or created_at is None or self._capture.since is not None:
            return
        if event.enqueued_time + SAME_TIME < created_at:
            raise SourceRejectedError(
                f"Capture file {name} is of a hub that was deleted: the hub of today was created "
                f"at {created_at:%Y-%m-%dT%H:%M:%SZ}, after its events. Give that time as `since` "
                "(in the command --capture ...&since=TIME), to leave such files out; after a "
                "fail-over of the same hub, give an earlier time, to read them"
            )


def _first_wanted(position: EventPosition) -> int | None:
    """Return the first number wanted; ``None`` if the position is no number."""
    if position.is_latest or position.enqueued_time is not None:
        return None
    if position.is_earliest or position.offset == "-1":
        return 0
    number = position.sequence_number
    return None if number is None else number + (not position.is_inclusive)


def _is_before(position: EventPosition, number: int | None) -> IsBefore | None:
    """Return whether an event comes before a position; ``None`` if only the hub can tell."""
    if number is not None:
        return lambda event: event.sequence_number < number
    time, offset = position.enqueued_time, position.offset
    if time is not None:
        if position.is_inclusive:
            return lambda event: event.enqueued_time < time
        return lambda event: event.enqueued_time <= time
    if offset is None or not offset.isdecimal():
        return None
    least = int(offset) + (not position.is_inclusive)
    return lambda event: _offset_of(event) < least


def _offset_of(event: ReceivedEvent) -> int:
    """Return the offset as a number, to look for one.

    Raises:
        SourceRejectedError: offsets are no numbers, as in a geo-replicated namespace.
    """
    if not event.offset.isdecimal():
        raise SourceRejectedError(
            f"Capture files cannot be searched for an offset, because theirs are no numbers "
            f"({event.offset!r}): give the sequence number of the event"
        )
    return int(event.offset)
