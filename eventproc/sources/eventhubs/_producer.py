# ruff: noqa: SLF001 - fills a batch of Azure's client with encoded events, which it has no name for
"""A wrapper around Azure's producer client, and its batches: each is one request.

Azure's client encodes each event twice: the first time only to compute its size. That takes most of
the time of publishing, so events are encoded here, and appended to the client's own batch.

Rule: every exception of Azure's client leaves this module as a ``SourceError``.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from azure.eventhub import EventData, EventDataBatch

from eventproc.errors import SourceError
from eventproc.models import PropertyValue, ReceivedEvent
from eventproc.sources.eventhubs._client import EventHubAddress, answered

_SHORT_MAX: Final = 255
_COST_OF_SHORT: Final = 5
_COST_OF_LONG: Final = 8
"""Bytes that a batch adds to those of each event: for a short event, and for a longer one."""


class Batch:
    """Encoded events of one target, up to the size that the link allows."""

    def __init__(self, batch: EventDataBatch) -> None:
        self.request = batch
        """The batch of Azure's client."""

    def __len__(self) -> int:
        return len(self.request)

    @property
    def bytes_max(self) -> int:
        """Most bytes of the batch."""
        return self.request.max_size_in_bytes

    def size_with(self, event: bytes) -> int:
        """Return the bytes of the batch with another event."""
        cost = _COST_OF_SHORT if len(event) <= _SHORT_MAX else _COST_OF_LONG
        return self.request.size_in_bytes + len(event) + cost

    def add(self, event: bytes) -> bool:
        """Add an event; return false, and change nothing, if there is no room for it."""
        size = self.size_with(event)
        if size > self.bytes_max:
            return False
        self.request._message.data.append(event)
        self.request._size = size
        self.request._count += 1
        return True


ANSWERS_MAX: Final = 4
"""Sending may take this many times ``connect_timeout``: several round trips for connection, token,
link and event."""

_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1
_ULONG_MAX: Final = 2**64 - 1


class Producer:
    """A connection that sends events to one event hub."""

    def __init__(
        self,
        hub: EventHubAddress,
    ) -> None:
        self._answer_max_s = ANSWERS_MAX * hub.options.connect_timeout.total_seconds()
        self._client = hub.producer()

    async def check(self) -> None:
        """Request the properties of the hub, to check that it exists and can be reached."""
        async with self._answered("asking for the properties of"):
            await self._client.get_eventhub_properties()

    async def partition_ids(self) -> list[str]:
        """Request the ids of the partitions."""
        async with self._answered("asking for the partitions of"):
            return await self._client.get_partition_ids()

    async def send(self, event: ReceivedEvent, extra_properties: Mapping[str, str | int]) -> bool:
        """Send an event with extra properties.

        Returns false, and sends nothing, if the hub cannot have it: it is too large, or AMQP has no
        form for a value of it.
        """
        try:
            (event.partition_key or "").encode()
        except UnicodeEncodeError:
            return False
        async with self._answered("connecting to"):
            batch = await self._client.create_batch(partition_key=event.partition_key)
        try:
            data = _event(event.body, {**event.properties, **extra_properties})
            for name in ("content_type", "correlation_id", "message_id"):
                if (value := getattr(event, name)) is not None:
                    setattr(data, name, value)
            batch.add(data)
        except Exception:  # noqa: BLE001 - the client's encoder raises any, depending on the value
            return False
        async with self._answered("sending to"):
            await self._client.send_batch(batch)
        return True

    async def bytes_max(self) -> int:
        """Most bytes of an event and its properties that the hub accepts."""
        async with self._answered("connecting to"):
            return (await self._client.create_batch()).max_size_in_bytes

    async def new_batch(self, *, partition_id: str | None, partition_key: str | None) -> Batch:
        """Return an empty batch with the size limit of the link, for one partition or one key."""
        async with self._answered("connecting to"):
            batch = await self._client.create_batch(
                partition_id=partition_id, partition_key=partition_key
            )
        return Batch(batch)

    async def send_batch(self, batch: Batch, where: str = "") -> None:
        """Send a batch, and return when the service has stored it; *where* is for the error."""
        async with self._answered(f"sending a batch of {len(batch)} events to {where}".rstrip()):
            await self._client.send_batch(batch.request)

    async def close(self) -> None:
        """Close the connection. Never raises."""
        with suppress(SourceError):
            async with self._answered("closing the connection to"):
                await self._client.close()

    @asynccontextmanager
    async def _answered(self, what: str) -> AsyncIterator[None]:
        """Translate exceptions of the client, and a timeout, to a ``SourceError``."""
        with answered(f"{what} event hub {self._client.eventhub_name!r}"):
            async with asyncio.timeout(self._answer_max_s):
                yield


def _event(body: bytes, properties: Mapping[str, Any]) -> EventData:
    """Return an event of the client with these properties.

    Raises:
        ValueError: an integer has more than 64 bits.
    """
    data = EventData(body)
    if properties:
        data.properties = {name: _typed(value) for name, value in properties.items()}
    return data


def _typed(value: PropertyValue) -> Any:  # noqa: ANN401 - as the client takes it
    """Name the type of an integer that the client would encode in 32 bits, and so refuse."""
    if type(value) is not int or ~_INT_MAX <= value <= _INT_MAX:
        return value
    if not ~_LONG_MAX <= value <= _ULONG_MAX:
        raise ValueError(f"the integer {value} has more than 64 bits")
    return {"TYPE": "LONG" if value <= _LONG_MAX else "ULONG", "VALUE": value}
