"""Azure's producer, for dead letters. Beside ``vendor`` the only importer of ``azure.eventhub``.

Rule: whatever Azure raises leaves this file as one of its own errors.
"""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from azure.core.exceptions import AzureError
from azure.eventhub import EventData
from azure.eventhub.aio import EventHubProducerClient
from azure.eventhub.exceptions import AuthenticationError, ConnectError, EventHubError

from eventproc.models import ReceivedEvent
from eventproc.sources.eventhubs.options import EventHubOptions
from eventproc.sources.eventhubs.vendor import Credential


class SendingError(Exception):
    """Nothing is known to be sent. Never leaves the sink."""


class NoSuchHubError(SendingError):
    """The service refuses for good."""


class Producer:
    """A connection to one event hub, to send to."""

    def __init__(
        self,
        namespace: str,
        eventhub_name: str,
        credential: Credential,
        options: EventHubOptions,
        *,
        ssl_context: ssl.SSLContext,
    ) -> None:
        self._client = EventHubProducerClient(
            namespace,
            eventhub_name,
            # The producer takes the same credentials as the consumer does.
            cast("Any", credential),
            # One policy, and it is the caller's, who tries again for as long as it takes.
            retry_total=0,
            auth_timeout=options.connect_timeout.total_seconds(),
            use_tls=options.is_tls_on,
            custom_endpoint_address=options.custom_endpoint,
            ssl_context=ssl_context,
        )

    async def check(self) -> None:
        """Ask the hub for its name."""
        with _translated():
            await self._client.get_eventhub_properties()

    async def send(self, event: ReceivedEvent, told: Mapping[str, str | int]) -> bool:
        """Send an event with more properties; return false if it is too large."""
        data = EventData(event.body)
        data.properties = {
            name: value for part in (event.properties, told) for name, value in part.items()
        }
        for name in ("content_type", "correlation_id", "message_id"):
            if (value := getattr(event, name)) is not None:
                setattr(data, name, value)
        with _translated():
            batch = await self._client.create_batch(partition_key=event.partition_key)
            try:
                batch.add(data)
            except ValueError:
                return False
            await self._client.send_batch(batch)
        return True

    async def close(self) -> None:
        """Let go of the connection."""
        await self._client.close()


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (AuthenticationError, ConnectError) as error:
        refused = isinstance(error, AuthenticationError) or "not-found" in str(error)
        raise (NoSuchHubError if refused else SendingError)(str(error)) from error
    except (EventHubError, AzureError, OSError, TimeoutError) as error:
        raise SendingError(str(error)) from error
