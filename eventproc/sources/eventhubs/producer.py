"""A wrapper around Azure's producer client, for dead letters.

Rule: every exception of Azure's client leaves this module as a ``SourceError``.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, cast

from azure.eventhub import EventData
from azure.eventhub.aio import EventHubProducerClient

from eventproc.errors import SourceError
from eventproc.models import ReceivedEvent
from eventproc.sources.eventhubs.client import Credential, answered
from eventproc.sources.eventhubs.options import EventHubOptions

ANSWERS_MAX: Final = 4
"""Sending may take this many times ``connect_timeout``: several round trips for connection, token,
link and event."""


class Producer:
    """A connection that sends events to one event hub."""

    def __init__(
        self,
        namespace: str,
        eventhub_name: str,
        credential: Credential,
        options: EventHubOptions,
        *,
        ssl_context: ssl.SSLContext,
    ) -> None:
        self._answer_max_s = ANSWERS_MAX * options.connect_timeout.total_seconds()
        self._client = EventHubProducerClient(
            namespace,
            eventhub_name,
            # The producer accepts the same types of credentials as the consumer.
            cast("Any", credential),
            # The client does not retry: the caller of the sink does.
            retry_total=0,
            auth_timeout=options.connect_timeout.total_seconds(),
            use_tls=options.is_tls_on,
            custom_endpoint_address=options.custom_endpoint,
            ssl_context=ssl_context,
        )

    async def check(self) -> None:
        """Request the properties of the hub, to check that it exists and can be reached."""
        async with self._answered("asking for the properties of"):
            await self._client.get_eventhub_properties()

    async def send(self, event: ReceivedEvent, extra_properties: Mapping[str, str | int]) -> bool:
        """Send an event with extra properties; return false if it is too large for the hub."""
        data = EventData(event.body)
        data.properties = {
            name: value
            for part in (event.properties, extra_properties)
            for name, value in part.items()
        }
        for name in ("content_type", "correlation_id", "message_id"):
            if (value := getattr(event, name)) is not None:
                setattr(data, name, value)
        async with self._answered("sending to"):
            batch = await self._client.create_batch(partition_key=event.partition_key)
            try:
                batch.add(data)
            except ValueError:
                return False
            await self._client.send_batch(batch)
        return True

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
