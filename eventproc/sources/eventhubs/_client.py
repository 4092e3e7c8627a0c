"""Build Azure's clients: address, credential, TLS and proxy. Nothing connects here.

``_direct_path/azure_internals.py`` then uses its private attributes, ``_public_path.py`` only its
public methods.
"""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import certifi
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.eventhub import TransportType
from azure.eventhub.aio import EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.exceptions import AuthenticationError

from eventproc._base.identity import AnyTokenCredential, shared
from eventproc._base.network import HttpProxy
from eventproc.errors import ConfigurationError, SourceUnavailableError, SuspectSettingError
from eventproc.models import EventPosition
from eventproc.sources._connection_string import (
    check_hub_name,
    check_namespace,
    parse_connection_string,
)
from eventproc.sources.eventhubs._errors import translated
from eventproc.sources.eventhubs._options import EventHubOptions, Transport

Client = EventHubConsumerClient
Credential = AnyTokenCredential | AzureNamedKeyCredential | AzureSasCredential
"""A token credential of ``azure.identity`` or ``azure.identity.aio``, a key or a signature."""

CLOSE_MAX_S: Final = 5.0
"""Longest time to close a client. It checks only once a second whether its tasks have ended."""


def parse_address(
    conn_str: str, eventhub_name: str | None, options: EventHubOptions | None
) -> tuple[tuple[str, str, Credential], EventHubOptions]:
    """Parse a connection string: namespace, event hub and credential, and the options to use.

    Raises:
        ConfigurationError: the string cannot work; the message does not repeat the key.
    """
    parsed = parse_connection_string(conn_str, eventhub_name)
    credential: Credential = AzureSasCredential(parsed.signature or "")
    if parsed.key_name and parsed.key:
        credential = AzureNamedKeyCredential(parsed.key_name, parsed.key)
    options = options or EventHubOptions()
    if parsed.is_emulator:
        options = replace(options, is_tls_on=False)
    if parsed.is_over_websockets:
        options = replace(options, transport=Transport.WEBSOCKET)
    return (parsed.fully_qualified_namespace, parsed.eventhub_name, credential), options


def make_ssl_context(options: EventHubOptions) -> ssl.SSLContext:
    """Load the certificates to trust. It takes 30 ms: call it once, and not on an event loop.

    Without an SSL context, the client loads them for each connection, even for one without TLS.

    Raises:
        ConfigurationError: ``ca_bundle`` cannot be read as certificates.
    """
    if options.ssl_context is not None:
        return options.ssl_context
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if options.is_tls_on:
        try:
            context.load_verify_locations(options.ca_bundle or certifi.where())
        except OSError as error:  # ssl.SSLError is one
            raise ConfigurationError(
                f"cannot be read as certificates: {error}",
                setting="ca_bundle",
                value=repr(options.ca_bundle),
            ) from error
    return context


class EventHubAddress:
    """An event hub, a credential for it, and how to connect: makes Azure's clients.

    Args:
        fully_qualified_namespace: for example ``contoso.servicebus.windows.net``.
        eventhub_name: the event hub's name.
        credential: is not closed.
        options: how to connect.

    Raises:
        ConfigurationError: the namespace or the event hub's name is not valid.
    """

    def __init__(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        credential: Credential,
        options: EventHubOptions | None,
    ) -> None:
        self.namespace = check_namespace(fully_qualified_namespace)
        self.name = check_hub_name(eventhub_name)
        self.options = options or EventHubOptions()
        self.credential = shared(credential)
        self._ssl_context: ssl.SSLContext | None = None

    def __str__(self) -> str:
        return f"event hub {self.name!r}"

    @classmethod
    def from_connection_string(
        cls, conn_str: str, *, eventhub_name: str | None, options: EventHubOptions | None
    ) -> "EventHubAddress":
        """Parse a connection string.

        Raises:
            ConfigurationError: it cannot work; the message does not repeat the key.
        """
        address, options = parse_address(conn_str, eventhub_name, options)
        return cls(*address, options)

    @property
    def is_open(self) -> bool:
        """Whether clients may be made."""
        return self._ssl_context is not None

    async def open(self) -> None:
        """Load the certificates to trust.

        Raises:
            ConfigurationError: ``ca_bundle`` cannot be read as certificates.
        """
        self._ssl_context = await asyncio.to_thread(make_ssl_context, self.options)

    def close(self) -> None:
        """Make no more clients."""
        self._ssl_context = None

    def consumer(self, group: str) -> Client:
        """Return a new client for one consumer group. It connects only when it is used."""
        return EventHubConsumerClient(
            consumer_group=group,
            retry_backoff_factor=0.0,
            idle_timeout=self.options.silence_max.total_seconds(),
            **self._arguments(),
        )

    def producer(self) -> EventHubProducerClient:
        """Return a new client that publishes. It connects only when it is used."""
        return EventHubProducerClient(**self._arguments())

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of each client."""
        if self._ssl_context is None:
            raise RuntimeError(
                f"the connection to {self} is not open: use `async with`, or call open() first"
            )
        options, proxy = self.options, self.options.http_proxy
        return {
            "fully_qualified_namespace": self.namespace,
            "eventhub_name": self.name,
            "credential": self.credential,
            "ssl_context": self._ssl_context,
            # The client does not retry: its caller decides when to try again.
            "retry_total": 0,
            "auth_timeout": options.connect_timeout.total_seconds(),
            "use_tls": options.is_tls_on,
            # A proxy works with WebSockets only. With a custom endpoint, too, the client would ask
            # it for the wrong port unless the transport is named.
            "transport_type": _TRANSPORTS[Transport.WEBSOCKET if proxy else options.transport],
            "custom_endpoint_address": options.custom_endpoint,
            "http_proxy": _proxy_settings(proxy) if proxy else None,
            "user_agent": options.user_agent,
            "logging_enable": options.is_wire_logged,
        }


@contextmanager
def answered(what: str) -> Iterator[None]:
    """Translate what a client raises for a request to a ``SourceError``."""
    try:
        with translated(what):
            yield
    except SourceUnavailableError as error:
        if not isinstance(error.__cause__, AuthenticationError):
            raise
        raise SuspectSettingError(
            f"{what}: the token was not accepted. The hub does not exist, the credential is "
            "refused or the service cannot check it now; Azure's client does not report which"
        ) from error.__cause__


async def close_client(client: Client) -> None:
    """Disconnect within ``CLOSE_MAX_S``. Never raises."""
    with translated("closing the client", is_silent=True):
        async with asyncio.timeout(CLOSE_MAX_S):
            await client.close()


def _proxy_settings(proxy: HttpProxy) -> dict[str, str | int | None]:
    settings: dict[str, str | int | None] = {
        # The client joins hostname and port with a colon, and aiohttp takes only a URL.
        "proxy_hostname": proxy.url.rpartition(":")[0],
        "proxy_port": proxy.port,
    }
    if proxy.username:
        settings |= {"username": proxy.username, "password": proxy.password}
    return settings


_TRANSPORTS: Final = {
    Transport.AMQP: TransportType.Amqp,
    Transport.WEBSOCKET: TransportType.AmqpOverWebsocket,
}


_NEARLY_A_MILLISECOND: Final = timedelta(microseconds=999)


def start_of(position: EventPosition) -> str | int | datetime:
    """Return the position as the client's ``starting_position``.

    Whether the position is inclusive is a separate argument of the client.
    """
    if position.is_latest:
        return "@latest"
    if position.enqueued_time is not None and position.is_inclusive:
        # The client truncates the time to milliseconds, so an event within that millisecond could
        # be earlier than the wanted time.
        return position.enqueued_time + _NEARLY_A_MILLISECOND
    for value in (position.offset, position.sequence_number, position.enqueued_time):
        if value is not None:
            return value
    return "-1"
