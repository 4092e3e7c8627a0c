"""Receiving by what Azure's client promises, and nothing else: slower, and it cannot break.

The client calls back with batches, sleeps between reads, and tells of errors when it meets them. So
a receiver counts as open before its link is, and what is wrong with the link is told by the first
``receive``.

Rule: the client's call back returns when its batch was taken. Until then it reads only what its own
buffer holds, so that what waits is bounded: three thirds of ``prefetch``.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, ClassVar, Final, cast

from azure.eventhub import EventData
from azure.eventhub.aio import PartitionContext
from azure.eventhub.amqp import AmqpMessageBodyType
from azure.eventhub.exceptions import AuthenticationError

from eventproc.errors import ReceiverDisplacedError, SourceError, SourceUnavailableError
from eventproc.models import EventPosition, LastEnqueued, PartitionProperties, ReceivedEvent
from eventproc.ports import PartitionReceiver
from eventproc.sources.eventhubs.direct import OWNER_LEVEL
from eventproc.sources.eventhubs.event import PROPERTY_NAMES, to_received_event
from eventproc.sources.eventhubs.options import EventHubOptions
from eventproc.sources.eventhubs.refusal import SuspectSettingError, error_from, translated
from eventproc.sources.eventhubs.vendor import Client, start_of

CLOSE_MAX_S: Final = 5.0
"""The client looks once a second whether its tasks have ended."""

SIGN_OF_LIFE_S: Final = 1.5
"""The client calls back with nothing when it has received for so long without an event. It tells of
no error that it meets while it opens a link, but begins again and again, each time within this
time: so it does not call back at all."""

SILENCE_MAX_S: Final = 2.5 * SIGN_OF_LIFE_S
"""A client that did not call back for so long does not get its link open."""


class PromisedWay:
    """What the source asks for, asked of the client's public methods."""

    needs_own_client: ClassVar = True
    """A client closes as a whole, and reads each partition for one consumer only."""

    def __init__(self, options: EventHubOptions) -> None:
        """Follow the options, as far as the client has them."""
        self._options = options

    async def ask_partition_ids(self, client: Client) -> Sequence[str]:
        """Ask the service which partitions the hub has."""
        with _answered(f"asking event hub {client.eventhub_name!r} for its partitions"):
            return tuple(await client.get_partition_ids())

    async def ask_partitions(
        self, client: Client, partition_ids: Sequence[str]
    ) -> Sequence[PartitionProperties]:
        """Ask the service where partitions begin and end, one after another."""
        found = []
        for partition_id in partition_ids:
            what = f"asking event hub {client.eventhub_name!r} for its partition {partition_id!r}"
            with _answered(what):
                found.append(_properties(await client.get_partition_properties(partition_id)))
        return found

    async def open_receiver(
        self, client: Client, group: str, partition_id: str, position: EventPosition
    ) -> "PromisedReceiver":
        """Begin to receive; the receiver closes the client."""
        owner_level = OWNER_LEVEL if self._options.is_exclusive else None
        return await self._open(client, group, partition_id, position, owner_level)

    async def check_readable(self, client: Client, group: str, partition_id: str) -> None:
        """Raise what the service has against reading; it displaces nobody."""
        latest = EventPosition.latest()
        receiver = await self._open(client, group, partition_id, latest, None)
        try:
            await receiver.until_heard()
        finally:
            await receiver.close()

    async def _open(
        self,
        client: Client,
        group: str,
        partition_id: str,
        position: EventPosition,
        owner_level: int | None,
    ) -> "PromisedReceiver":
        try:
            (properties,) = await self.ask_partitions(client, [partition_id])
        except BaseException:
            await client.close()
            raise
        if position.is_latest:  # by the time that the link is open, more may have come
            position = _behind(properties)
        what = f"receiving from partition {partition_id!r} of consumer group {group!r}"
        receiver = PromisedReceiver(client, what, third=max(1, self._options.prefetch // 3))
        receiver.begin(partition_id, position, owner_level)
        return receiver


class PromisedReceiver(PartitionReceiver):
    """One partition, received by the client's own ``receive_batch``."""

    def __init__(self, client: Client, what: str, *, third: int) -> None:
        """Take over the client; a *third* is what may be in each of three hands."""
        self._client = client
        self._what = what
        self._third = third
        self._buffer: deque[ReceivedEvent] = deque()
        self._arrived = asyncio.Event()
        self._taken = asyncio.Event()
        self._error: SourceError | None = None
        self._heard = asyncio.Event()
        self._heard_at_s = asyncio.get_running_loop().time()
        self._last_enqueued: LastEnqueued | None = None
        self._receiving: asyncio.Task[None] | None = None

    def begin(self, partition_id: str, position: EventPosition, owner_level: int | None) -> None:
        """Have the client receive from now on."""
        self._receiving = asyncio.create_task(
            self._client.receive_batch(
                self._on_batch,
                on_error=self._on_error,
                partition_id=partition_id,
                owner_level=owner_level,
                max_batch_size=self._third,
                max_wait_time=SIGN_OF_LIFE_S,
                prefetch=self._third,
                track_last_enqueued_event_properties=True,
                starting_position=start_of(position),
                starting_position_inclusive=position.is_inclusive,
            )
        )

    async def receive(self, *, events_max: int, wait_max: timedelta) -> Sequence[ReceivedEvent]:
        await asyncio.sleep(0)
        clock = asyncio.get_running_loop().time
        end_s = clock() + wait_max.total_seconds()
        while not self._buffer and self._error is None and clock() < end_s:
            await self._wait_until(min(end_s, self._heard_at_s + SILENCE_MAX_S))
        # What a displaced receiver still has will come to its successor too: a duplicate less.
        if self._error is not None and (
            not self._buffer or isinstance(self._error, ReceiverDisplacedError)
        ):
            raise self._error
        events = [self._buffer.popleft() for _ in range(min(events_max, len(self._buffer)))]
        if events and not self._buffer:
            self._heard_at_s = clock()
            self._taken.set()
        return events

    async def until_heard(self) -> None:
        """Return when the link is open; raise why it is not."""
        await self._wait_until(self._heard_at_s + SILENCE_MAX_S, self._heard)
        if self._error is not None:
            raise self._error

    async def _wait_until(self, at_s: float, event: asyncio.Event | None = None) -> None:
        """Wait for something to arrive; end the receiver if nothing was heard for too long."""
        event = event or self._arrived
        event.clear()
        try:
            async with asyncio.timeout_at(at_s):
                await event.wait()
        except TimeoutError:
            if asyncio.get_running_loop().time() >= self._heard_at_s + SILENCE_MAX_S:
                self._end(
                    SuspectSettingError(
                        f"{self._what}: no link within {SILENCE_MAX_S:g} s. The service refuses "
                        "it or does not answer; Azure's client does not tell which"
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
            with translated(self._what, is_silent=True):
                await self._client.close()

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        return self._last_enqueued

    @property
    def is_over(self) -> bool:
        """Whether it will never again read from its partition."""
        return self._error is not None

    async def _on_batch(self, context: PartitionContext, batch: list[EventData]) -> None:
        self._heard_at_s = asyncio.get_running_loop().time()
        self._heard.set()
        if not batch or self._error is not None:
            return
        try:
            events = [to_received_event(PublicMessage(event)) for event in batch]
        except SourceError as error:
            self._end(error)
            return
        self._note_last_enqueued(context.last_enqueued_event_properties)
        self._buffer.extend(events)
        self._taken.clear()
        self._arrived.set()
        await self._taken.wait()

    async def _on_error(self, context: PartitionContext | None, error: Exception) -> None:
        del context  # there is one partition
        self._end(error_from(self._what, error))

    def _note_last_enqueued(self, told: Mapping[str, Any] | None) -> None:
        number = (told or {}).get("sequence_number")
        if told is not None and isinstance(number, int):
            offset = told.get("offset") or b""
            self._last_enqueued = LastEnqueued(
                sequence_number=number,
                offset=offset.decode() if isinstance(offset, bytes) else str(offset),
                enqueued_time=told.get("enqueued_time"),
            )

    def _end(self, error: SourceError) -> None:
        """Receive no more; the first reason stays."""
        if self._error is None:
            self._error = error
        self._arrived.set()
        self._heard.set()
        self._taken.set()


class PublicMessage:
    """The sections of a message, as far as ``EventData`` shows them."""

    def __init__(self, event: EventData) -> None:
        """Look at an event that was received."""
        self._raw = event.raw_amqp_message

    @property
    def delivery_annotations(self) -> Mapping[bytes, object] | None:
        """What the service says for this delivery alone."""
        return cast("Mapping[bytes, object] | None", self._raw.delivery_annotations)

    @property
    def message_annotations(self) -> Mapping[bytes, object] | None:
        """What the service says of the event."""
        return cast("Mapping[bytes, object] | None", self._raw.annotations)

    @property
    def properties(self) -> Sequence[object] | None:
        """AMQP's own thirteen properties, in the order of the standard."""
        found = self._raw.properties
        if not found:
            return None
        return [getattr(found, name.replace("-", "_")) for name in PROPERTY_NAMES]

    @property
    def application_properties(self) -> Mapping[bytes, object] | None:
        """What the publisher attached."""
        return cast("Mapping[bytes, object] | None", self._raw.application_properties)

    @property
    def data(self) -> Iterable[bytes] | None:
        """The body, in one section or several."""
        return self._raw.body if self._raw.body_type is AmqpMessageBodyType.DATA else None

    @property
    def sequence(self) -> Sequence[object] | None:
        """The body, where it is a list of values."""
        is_sequence = self._raw.body_type is AmqpMessageBodyType.SEQUENCE
        return list(self._raw.body) if is_sequence else None

    @property
    def value(self) -> object:
        """The body, where it is one value."""
        return self._raw.body if self._raw.body_type is AmqpMessageBodyType.VALUE else None


@contextmanager
def _answered(what: str) -> Iterator[None]:
    """Turn what the client raises for a question into an error of ours."""
    try:
        with translated(what):
            yield
    except SourceUnavailableError as error:
        if not isinstance(error.__cause__, AuthenticationError):
            raise
        raise SuspectSettingError(
            f"{what}: the token was not taken. The service knows no such hub, does not like the "
            "credential or cannot look now; Azure's client does not tell which"
        ) from error.__cause__


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


def _behind(properties: PartitionProperties) -> EventPosition:
    """The position behind the newest event that there is."""
    if properties.last_enqueued_sequence_number < 0:
        return EventPosition.earliest()
    return EventPosition.from_sequence_number(properties.last_enqueued_sequence_number)
