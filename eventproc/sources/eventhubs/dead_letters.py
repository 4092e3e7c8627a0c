"""Dead letters into another event hub: the event as it was, with its story among the properties."""

import asyncio
import ssl
from dataclasses import replace
from typing import Final, Self

from eventproc.deadletter import DeadLetter
from eventproc.errors import ConfigurationError, DeadLetterError
from eventproc.ports import DeadLetterSink
from eventproc.sources.connection_string import (
    check_hub_name,
    check_namespace,
    parse_connection_string,
)
from eventproc.sources.eventhubs import producer, vendor
from eventproc.sources.eventhubs.options import EventHubOptions

STORY_PREFIX: Final = "eventproc_"
"""Before the name of each part of the story, so that it hides no property of the event's own."""

LEAVE_OUT: Final = ((), ("traceback",), ("traceback", "error_message"))
"""What to do without, in this order, where the event with its story is too large for the hub."""


class EventHubDeadLetterSink(DeadLetterSink):
    """Sends each letter to an event hub, under the event's own partition key.

    Body, properties and ids are the event's. Each part of ``DeadLetter.story`` is one property
    more, with ``eventproc_`` before its name. A letter may come twice; ``eventproc_letter_id`` is
    then the same.

    Args:
        fully_qualified_namespace: for example ``contoso.servicebus.windows.net``.
        eventhub_name: the hub for dead letters, which must exist.
        credential: as for ``EventHubSource``; it must be allowed to send.
        options: how to connect.
    """

    def __init__(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        credential: vendor.Credential,
        *,
        options: EventHubOptions | None = None,
    ) -> None:
        self._namespace = check_namespace(fully_qualified_namespace)
        self._hub = check_hub_name(eventhub_name)
        self._credential = credential
        self._options = options or EventHubOptions()
        self._ssl_context: ssl.SSLContext | None = None
        self._producer: producer.Producer | None = None
        self._turn = asyncio.Lock()

    @classmethod
    def from_connection_string(
        cls,
        conn_str: str,
        *,
        eventhub_name: str | None = None,
        options: EventHubOptions | None = None,
    ) -> Self:
        """Build a sink from a connection string of the namespace or of the hub."""
        parsed = parse_connection_string(conn_str, eventhub_name)
        options = options or EventHubOptions()
        return cls(
            parsed.fully_qualified_namespace,
            parsed.eventhub_name,
            vendor.make_credential(parsed),
            options=replace(options, is_tls_on=False) if parsed.is_emulator else options,
        )

    async def open(self) -> None:
        """Connect, and look whether the hub is there."""
        self._ssl_context = await asyncio.to_thread(vendor.make_ssl_context, self._options)
        try:
            await self._connected().check()
        except producer.NoSuchHubError as error:
            await self.close()
            raise ConfigurationError(
                f"event hub {self._hub!r} for dead letters cannot be used: {error}. Check its name "
                "and that the credential may send"
            ) from error
        except producer.SendingError as error:
            await self.close()
            raise DeadLetterError(f"event hub {self._hub!r} did not answer: {error}") from error

    async def close(self) -> None:
        """Let go of the connection."""
        sender, self._producer = self._producer, None
        if sender is not None:
            await sender.close()

    async def store(self, letter: DeadLetter) -> None:
        """Send the letter, with as much of its story as the hub takes."""
        async with self._turn:
            for left_out in LEAVE_OUT:
                story = {k: v for k, v in letter.story().items() if k not in left_out}
                story["letter_id"] = letter.letter_id
                told = {STORY_PREFIX + name: value for name, value in story.items()}
                try:
                    if await self._connected().send(letter.event, told):
                        return
                except producer.SendingError as error:
                    await self.close()  # The next attempt begins with a new connection.
                    raise DeadLetterError(f"{self._hub!r} did not take it: {error}") from error
        raise DeadLetterError(
            f"event {letter.event.sequence_number} is too large for event hub {self._hub!r}, even "
            "with little of its story: give that hub's namespace a larger limit"
        )

    def _connected(self) -> producer.Producer:
        if self._ssl_context is None:
            raise DeadLetterError("the sink is not open")
        if self._producer is None:
            self._producer = producer.Producer(
                self._namespace,
                self._hub,
                self._credential,
                self._options,
                ssl_context=self._ssl_context,
            )
        return self._producer
