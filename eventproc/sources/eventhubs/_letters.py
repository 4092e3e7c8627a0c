"""Dead letters in an event hub: events with the error in their properties.

A letter that one event cannot have is sent as its JSON, in several events.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Final, Self

from eventproc._base.settings import SECRET, checked
from eventproc.errors import (
    ConfigurationError,
    DeadLetterError,
    LetterDamagedError,
    SourceError,
    SourceRejectedError,
    SuspectSettingError,
)
from eventproc.models import (
    KAFKA_KEY,
    KAFKA_TOMBSTONE,
    REPLAYED_FROM_PROPERTY,
    UNDECODED,
    DeadLetter,
    ReceivedEvent,
    letter_from_json,
)
from eventproc.ports import DeadLetterSink
from eventproc.sources.eventhubs import _client as azure_client
from eventproc.sources.eventhubs import _producer as producer
from eventproc.sources.eventhubs._options import EventHubOptions

PROPERTY_PREFIX: Final = "eventproc_"
"""Prefix of the properties that describe the failure, so that none replaces one of the event."""


LEAVE_OUT: Final = ((), ("traceback",), ("traceback", "error_message"))
"""Properties to omit, in the order of the attempts, if the letter is too large for the hub."""


PART_COST: Final = 8 * 1024
"""Room for the properties of a part, in bytes; the smallest limit of a hub is 256 KiB."""


class EventHubDeadLetterSink(DeadLetterSink):
    """Sends each dead letter to an event hub, with the partition key of the failed event.

    Body, properties and ids are those of the event. Each entry of ``DeadLetter.details`` is
    added as a property with the prefix ``eventproc_``. A letter may be sent twice; both copies have
    the same ``eventproc_letter_id``.

    An event that a hub cannot have in this form, because it is too large with these properties, has
    values that cannot be published or could not be decoded, is sent as the JSON of its letter
    instead, in as many parts as the hub's limit makes necessary (``eventproc_part_number`` from 0
    on, ``eventproc_part_count``, ``eventproc_json_sha256``).

    Args:
        fully_qualified_namespace: for example ``contoso.servicebus.windows.net``.
        eventhub_name: the hub for dead letters, which must exist.
        credential: as for ``EventHubSource``; it needs the right to send.
        options: how to connect.
    """

    @checked
    def __init__(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        credential: Annotated[azure_client.Credential, SECRET],
        *,
        options: EventHubOptions | None = None,
    ) -> None:
        self._hub = azure_client.EventHubAddress(
            fully_qualified_namespace, eventhub_name, credential, options
        )
        self._producer: producer.Producer | None = None
        self._send_lock = asyncio.Lock()  # Renewed by ``open``: it belongs to a loop.

    @classmethod
    @checked
    def from_connection_string(
        cls,
        conn_str: Annotated[str, SECRET],
        *,
        eventhub_name: str | None = None,
        options: EventHubOptions | None = None,
    ) -> Self:
        """Build a sink from a connection string of the namespace or of the hub."""
        address, options = azure_client.parse_address(conn_str, eventhub_name, options)
        return cls(*address, options=options)

    async def open(self) -> None:
        """Connect, and check that the hub exists.

        Raises:
            ConfigurationError: the hub does not exist, or the service refuses the credential.
            DeadLetterError: the service did not answer.
        """
        self._send_lock = asyncio.Lock()
        await self._hub.open()
        try:
            await self._connected().check()
        except (SourceRejectedError, SuspectSettingError) as error:
            await self.close()
            explained = error.with_remedy(". Check its name and that the credential may send")
            raise ConfigurationError(
                f"{self._hub} for dead letters cannot be used: {explained}"
            ) from error
        except SourceError as error:
            await self.close()
            raise DeadLetterError(f"{self._hub} did not answer: {error}") from error

    async def close(self) -> None:
        """Close the connection."""
        sender, self._producer = self._producer, None
        if sender is not None:
            await sender.close()

    async def store(self, letter: DeadLetter) -> None:
        """Send the letter, with as many properties about the failure as the hub's limit allows.

        Raises:
            DeadLetterError: it was not sent, or not known to be.
        """
        async with self._send_lock:
            try:
                is_plain = _NOT_PLAIN.isdisjoint(letter.event.system_properties)
                if not (is_plain and await self._sent(letter)):
                    await self._send_json(letter)
            except SourceError as error:
                await self.close()  # The next attempt makes a new connection.
                raise DeadLetterError(
                    f"sending a dead letter to {self._hub} failed: {error}"
                ) from error

    async def _sent(self, letter: DeadLetter) -> bool:
        """Send the event with properties; return false if the hub cannot have it like this."""
        for left_out in LEAVE_OUT:
            details = {k: v for k, v in letter.details().items() if k not in left_out}
            details["letter_id"] = letter.letter_id
            properties = {PROPERTY_PREFIX + name: value for name, value in details.items()}
            if letter.event.replayed_from is not None:
                properties[REPLAYED_FROM_PROPERTY] = letter.event.replayed_from
            if await self._connected().send(letter.event, properties):
                return True
        return False

    async def _send_json(self, letter: DeadLetter) -> None:
        sender = self._connected()
        content_max = await sender.bytes_max() - PART_COST
        for part in parts_of(letter, content_max):
            event = ReceivedEvent(
                body=part.content,
                sequence_number=letter.event.sequence_number,
                offset=letter.event.offset,
                enqueued_time=letter.event.enqueued_time,
            )
            if not await sender.send(event, part.properties):
                raise DeadLetterError(
                    f"{self._hub} cannot take a part of {content_max} bytes of a dead letter"
                )

    def _connected(self) -> producer.Producer:
        if not self._hub.is_open:
            raise DeadLetterError("the sink is not open")
        if self._producer is None:
            self._producer = producer.Producer(self._hub)
        return self._producer


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterPart:
    """One part; those of the same JSON have the same digest, also if it was sent twice."""

    letter_id: str
    json_sha256: str
    part_number: int
    """From 0 on."""

    part_count: int
    content: bytes

    @property
    def properties(self) -> Mapping[str, str | int]:
        """The properties of its event."""
        return {PROPERTY_PREFIX + name: getattr(self, name) for name in _DETAILS}


_NOT_PLAIN: Final = frozenset({UNDECODED, KAFKA_KEY, KAFKA_TOMBSTONE})
"""System properties without which a replay would publish another event."""

_DETAILS: Final = {"letter_id": str, "json_sha256": str, "part_number": int, "part_count": int}


def parts_of(letter: DeadLetter, bytes_max: int) -> Iterator[LetterPart]:
    """Divide a letter's JSON into parts of at most *bytes_max* bytes."""
    whole = letter.to_json()
    pieces = [whole[at : at + bytes_max] for at in range(0, len(whole), bytes_max)]
    for number, piece in enumerate(pieces):
        yield LetterPart(
            letter_id=letter.letter_id,
            json_sha256=sha256(whole).hexdigest(),
            part_number=number,
            part_count=len(pieces),
            content=piece,
        )


def part_of(event: ReceivedEvent) -> LetterPart | None:
    """Return the part in an event; ``None`` if the event is a whole letter, or no letter."""
    details = {name: event.properties.get(PROPERTY_PREFIX + name) for name in _DETAILS}
    if not all(isinstance(details[name], kind) for name, kind in _DETAILS.items()):
        return None
    return LetterPart(**details, content=event.body)  # type: ignore[arg-type]  # just checked


def letter_from_parts(parts: Collection[LetterPart]) -> DeadLetter:
    """Return the letter of parts with one digest, which may be in any order.

    Raises:
        LetterDamagedError: parts are missing, or they are not those of a letter.
    """
    contents = {part.part_number: part.content for part in parts}
    whole = b"".join(contents[number] for number in sorted(contents))
    first = next(iter(parts))
    if sha256(whole).hexdigest() != first.json_sha256:
        raise LetterDamagedError(
            f"only {len(contents)} of the {first.part_count} parts of letter {first.letter_id} are "
            "left"
        )
    return letter_from_json(whole)
