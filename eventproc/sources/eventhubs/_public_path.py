"""Receive events through the public methods of Azure's client: slower, but no private names.

The client calls a function with each batch, sleeps between reads, and reports an error only after
the call that started receiving. So ``open_receiver`` returns before the link is open, and if it
does not open, the first ``receive`` raises the error.

Rule: the client's callback returns only after the caller has received its batch. Until then the
client only fills its own buffer, so memory is bounded: the client's buffer, the batch in the
callback and the receiver's buffer each hold at most a third of ``prefetch``.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar, Final, cast

from azure.eventhub import EventData
from azure.eventhub.aio import PartitionContext
from azure.eventhub.amqp import AmqpAnnotatedMessage, AmqpMessageBodyType

from eventproc._core.delivery.checkpoints import is_beyond_end
from eventproc.errors import (
    ReceiverDisplacedError,
    SourceError,
    SourceRejectedError,
    SourceUnavailableError,
    SuspectSettingError,
)
from eventproc.models import EventPosition, LastEnqueued, PartitionProperties, ReceivedEvent
from eventproc.ports import PartitionReceiver
from eventproc.sources._amqp.fields import (
    PROPERTY_NAMES,
    sequence_body,
    to_properties,
    to_system_fields,
    to_text,
    to_time,
    value_body,
)
from eventproc.sources.eventhubs._client import (
    CLOSE_MAX_S,
    Client,
    answered,
    close_client,
    start_of,
)
from eventproc.sources.eventhubs._errors import OffsetRefusedError, error_from
from eventproc.sources.eventhubs._event import (
    ENQUEUED_TIME,
    OFFSET,
    PARTITION_KEY,
    SEQUENCE_NUMBER,
    HubAnswer,
    checked_position,
    to_last_enqueued,
)
from eventproc.sources.eventhubs._options import PREFETCH, EventHubOptions

EMPTY_BATCH_AFTER_S: Final = 1.5
"""The client calls back with an empty batch after this time without an event. If it cannot open a
link, it does not report the error: it tries again, and never calls back."""

SILENCE_MAX_S: Final = 2.5 * EMPTY_BATCH_AFTER_S
"""If the client did not call back for this long, its link counts as failed to open."""

LATE_S: Final = 0.1
"""If a wait ends this late, the loop was blocked, so the client could not call back either."""


class PublicPath:
    """The operations of a source through the client's public methods."""

    needs_own_client: ClassVar = True
    """A client can only be closed as a whole, and reads each partition for one consumer only."""

    def __init__(self, options: EventHubOptions) -> None:
        """Use the options for which the client's public methods have an argument."""
        self._options = options
        self._failed_positions: dict[tuple[str, str], EventPosition] = {}
        """For each group and partition, the position at which the last link did not open."""

    async def ask_hub(self, client: Client) -> HubAnswer:
        """Request the ids of the hub's partitions, and when it was created."""
        with answered(f"asking event hub {client.eventhub_name!r} for its partitions"):
            found = await client.get_eventhub_properties()
            return HubAnswer(tuple(found["partition_ids"]), found["created_at"])

    async def ask_partitions(
        self, client: Client, partition_ids: Sequence[str]
    ) -> Sequence[PartitionProperties]:
        """Request the properties of some partitions, one after another."""
        found = []
        for partition_id in partition_ids:
            what = f"asking event hub {client.eventhub_name!r} for its partition {partition_id!r}"
            with answered(what):
                found.append(_properties(await client.get_partition_properties(partition_id)))
        return found

    async def open_receiver(
        self, client: Client, group: str, partition_id: str, position: EventPosition
    ) -> "PublicReceiver":
        """Start to receive; the receiver closes the client."""
        owner_level = self._options.owner_level if self._options.is_exclusive else None
        return await self._open(client, group, partition_id, position, owner_level)

    async def check_readable(self, client: Client, group: str, partition_id: str) -> None:
        """Raise if the service refuses to let the group read. No other receiver is displaced."""
        latest = EventPosition.latest()
        receiver = await self._open(client, group, partition_id, latest, None)
        try:
            await receiver.wait_until_open()
        finally:
            await receiver.close()

    async def _open(
        self,
        client: Client,
        group: str,
        partition_id: str,
        position: EventPosition,
        owner_level: int | None,
    ) -> "PublicReceiver":
        what = f"receiving from partition {partition_id!r} of consumer group {group!r}"
        key = (group, partition_id)
        if self._failed_positions.pop(key, None) == position and _may_be_refused(position):
            await close_client(client)
            raise OffsetRefusedError(f"{what}: no link at offset {position.offset!r}")
        on_open_failed = partial(self._failed_positions.__setitem__, key, position)
        try:
            (properties,) = await self.ask_partitions(client, [partition_id])
        except BaseException:
            await close_client(client)
            raise
        if not position.is_inclusive and is_beyond_end(position.sequence_number, properties):
            # The client would not report that the service refuses the position.
            await close_client(client)
            last = properties.last_enqueued_sequence_number
            raise SourceRejectedError(
                f"{what}: the position {position.sequence_number} is after the last event, {last}"
            )
        if position.is_latest:  # events may arrive before the link is open
            position = _after_newest(properties)
        receiver = PublicReceiver(
            client,
            what,
            buffer_size=max(1, (self._options.prefetch or PREFETCH) // 3),
            on_open_failed=on_open_failed,
        )
        receiver.begin(
            partition_id,
            position,
            owner_level,
            tracks_last_enqueued=self._options.tracks_last_enqueued,
        )
        return receiver


class PublicReceiver(PartitionReceiver):
    """One partition, received by the client's own ``receive_batch``."""

    def __init__(
        self, client: Client, what: str, *, buffer_size: int, on_open_failed: Callable[[], None]
    ) -> None:
        """Use the client, and close it together with the receiver.

        Args:
            client: The client to receive with; it is closed with the receiver.
            what: The operation, for error messages.
            buffer_size: Most events in each of three places: the client's buffer, the callback's
                batch and the receiver's buffer.
            on_open_failed: Called if the link did not open at its position.
        """
        self._client = client
        self._what = what
        self._buffer_size = buffer_size
        self._on_open_failed = on_open_failed
        self._is_open = False
        self._buffer: deque[ReceivedEvent] = deque()
        self._arrived = asyncio.Event()
        self._taken = asyncio.Event()
        self._error: SourceError | None = None
        self._called_back = asyncio.Event()
        self._called_back_at_s = asyncio.get_running_loop().time()
        self._last_enqueued: LastEnqueued | None = None
        self._receiving: asyncio.Task[None] | None = None

    def begin(
        self,
        partition_id: str,
        position: EventPosition,
        owner_level: int | None,
        *,
        tracks_last_enqueued: bool,
    ) -> None:
        """Start the client's receiving task."""
        self._receiving = asyncio.create_task(
            self._client.receive_batch(
                self._on_batch,
                on_error=self._on_error,
                partition_id=partition_id,
                owner_level=owner_level,
                max_batch_size=self._buffer_size,
                max_wait_time=EMPTY_BATCH_AFTER_S,
                prefetch=self._buffer_size,
                track_last_enqueued_event_properties=tracks_last_enqueued,
                starting_position=start_of(position),
                starting_position_inclusive=position.is_inclusive,
            )
        )
        self._receiving.add_done_callback(self._note_end)

    async def receive(self, *, events_max: int, wait_max: timedelta) -> Sequence[ReceivedEvent]:
        await asyncio.sleep(0)
        clock = asyncio.get_running_loop().time
        end_s = clock() + wait_max.total_seconds()
        while not self._buffer and self._error is None and clock() < end_s:
            await self._wait_until(min(end_s, self._called_back_at_s + SILENCE_MAX_S))
        # After a displacement the new receiver gets the buffered events too: do not return them.
        if self._error is not None and (
            not self._buffer or isinstance(self._error, ReceiverDisplacedError)
        ):
            raise self._error
        events = [self._buffer.popleft() for _ in range(min(events_max, len(self._buffer)))]
        if events and not self._buffer:
            self._called_back_at_s = clock()
            self._taken.set()
        return events

    async def wait_until_open(self) -> None:
        """Return when the link is open.

        Raises:
            SourceError: the link did not open.
        """
        while not self._is_open and self._error is None:
            await self._wait_until(self._called_back_at_s + SILENCE_MAX_S, self._called_back)
        if self._error is not None:
            raise self._error

    async def _wait_until(self, at_s: float, event: asyncio.Event | None = None) -> None:
        """Wait for *event*; end the receiver if the client did not call back for too long."""
        event = event or self._arrived
        event.clear()
        try:
            async with asyncio.timeout_at(at_s):
                await event.wait()
        except TimeoutError:
            now_s = asyncio.get_running_loop().time()
            if now_s > at_s + LATE_S:
                self._called_back_at_s = now_s
            if now_s >= self._called_back_at_s + SILENCE_MAX_S:
                self._note_open_failed()
                self._end(
                    SuspectSettingError(
                        f"{self._what}: no link within {SILENCE_MAX_S:g} s. The service refuses "
                        "it or does not answer; Azure's client does not report which"
                    )
                )

    async def close(self) -> None:
        self._end(SourceUnavailableError("the receiver is closed"))
        self._buffer.clear()
        receiving, self._receiving = self._receiving, None
        if receiving is not None:
            receiving.cancel()
            await asyncio.wait((receiving,), timeout=CLOSE_MAX_S)
            with suppress(asyncio.CancelledError, asyncio.InvalidStateError):
                receiving.exception()
            await close_client(self._client)

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        return self._last_enqueued

    @property
    def is_over(self) -> bool:
        """Whether the receiver has ended and will not read any more."""
        return self._error is not None

    async def _on_batch(self, context: PartitionContext, batch: list[EventData]) -> None:
        del context  # this receiver has one partition
        self._called_back_at_s = asyncio.get_running_loop().time()
        self._called_back.set()
        self._is_open = True
        if not batch or self._error is not None:
            return
        try:
            events = [to_received_event(event.raw_amqp_message) for event in batch]
        except SourceError as error:
            self._end(error)
            return
        newest: Any = batch[-1].raw_amqp_message.delivery_annotations
        self._last_enqueued = to_last_enqueued(newest) or self._last_enqueued
        self._buffer.extend(events)
        self._taken.clear()
        self._arrived.set()
        await self._taken.wait()

    async def _on_error(self, context: PartitionContext | None, error: Exception) -> None:
        del context  # this receiver has one partition
        self._note_open_failed()
        self._end(error_from(self._what, error))

    def _note_end(self, receiving: asyncio.Task[None]) -> None:
        """End the receiver with an error that the client raised instead of calling ``on_error``."""
        error = None if receiving.cancelled() else receiving.exception()
        if isinstance(error, Exception):
            self._note_open_failed()
            self._end(error_from(self._what, error))

    def _note_open_failed(self) -> None:
        if self._error is None and not self._is_open:
            self._on_open_failed()

    def _end(self, error: SourceError) -> None:
        """End the receiver. Later calls do not replace the first error."""
        if self._error is None:
            self._error = error
        self._arrived.set()
        self._called_back.set()
        self._taken.set()


def to_received_event(message: AmqpAnnotatedMessage) -> ReceivedEvent:
    """Return the event that a message carries.

    Raises:
        SourceRejectedError: it has no position in a partition, so no event hub sent it.
    """
    annotations: Mapping[Any, object] = message.annotations or {}
    sequence_number, offset, enqueued_ms = checked_position(
        annotations.get(SEQUENCE_NUMBER), annotations.get(OFFSET), annotations.get(ENQUEUED_TIME)
    )
    properties = message.properties
    attached = cast("Mapping[bytes, object]", message.application_properties)
    system = to_system_fields(
        annotations,
        [getattr(properties, name.replace("-", "_")) for name in PROPERTY_NAMES]
        if properties
        else None,
        attached,
    )
    return ReceivedEvent(
        body=_body_of(message),
        sequence_number=sequence_number,
        offset=offset,
        enqueued_time=to_time(enqueued_ms),
        partition_key=to_text(annotations.get(PARTITION_KEY)),
        properties=to_properties(attached),
        system_properties=system.system_properties,
        content_type=system.content_type,
        correlation_id=system.correlation_id,
        message_id=system.message_id,
    )


def _body_of(message: AmqpAnnotatedMessage) -> bytes:
    if message.body_type is AmqpMessageBodyType.DATA:
        return b"".join(message.body)
    if message.body_type is AmqpMessageBodyType.SEQUENCE:
        return sequence_body(message.body)
    return value_body(message.body)


def _properties(answer: Mapping[str, Any]) -> PartitionProperties:
    last = int(answer["last_enqueued_sequence_number"])
    return PartitionProperties(
        partition_id=str(answer["id"]),
        beginning_sequence_number=int(answer["beginning_sequence_number"]),
        last_enqueued_sequence_number=last,
        last_enqueued_offset=str(answer["last_enqueued_offset"]),
        last_enqueued_time=answer["last_enqueued_time_utc"] if last >= 0 else None,
        is_empty=bool(answer["is_empty"]),
    )


def _may_be_refused(position: EventPosition) -> bool:
    """Return whether the link may have failed because of geo-replication.

    Azure's client does not report the reason. Geo-replication refuses offsets that are numbers.
    The sequence number names the same event, so using it is correct for any other reason too.
    """
    offset = position.offset
    return offset is not None and offset.isdecimal() and position.sequence_number is not None


def _after_newest(properties: PartitionProperties) -> EventPosition:
    """Return the position after the newest event, so that none is missed."""
    if properties.last_enqueued_sequence_number < 0:
        return EventPosition.earliest()
    return EventPosition.from_sequence_number(properties.last_enqueued_sequence_number)
