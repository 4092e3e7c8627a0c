"""Azure's client, built: its address, credential, TLS and proxy. It connects nothing by itself.

``inside.py`` then drives it from within, and ``promised.py`` by its public methods alone.
"""

import ssl
from datetime import datetime
from typing import Final

import certifi
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.credentials_async import AsyncTokenCredential
from azure.eventhub import TransportType
from azure.eventhub.aio import EventHubConsumerClient

from eventproc.errors import ConfigurationError
from eventproc.models import EventPosition
from eventproc.sources.connection_string import HubConnection
from eventproc.sources.eventhubs.options import EventHubOptions, HttpProxy, Transport

Client = EventHubConsumerClient
Credential = AsyncTokenCredential | AzureNamedKeyCredential | AzureSasCredential


def make_credential(connection: HubConnection) -> Credential:
    """Return what the connection string gives to sign with."""
    if connection.key_name and connection.key:
        return AzureNamedKeyCredential(connection.key_name, connection.key)
    return AzureSasCredential(connection.signature or "")


def make_ssl_context(options: EventHubOptions) -> ssl.SSLContext:
    """Load the certificates to trust: 30 ms of reading, so do it once and not on an event loop.

    Left to itself, the client does it for each connection, even for one without TLS.

    Raises:
        ConfigurationError: the file with the certificates is none.
    """
    if options.ssl_context is not None:
        return options.ssl_context
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if options.is_tls_on:
        try:
            context.load_verify_locations(options.ca_bundle or certifi.where())
        except OSError as error:  # ssl.SSLError is one
            raise ConfigurationError(
                f"ca_bundle {options.ca_bundle!r} cannot be read as certificates: {error}"
            ) from error
    return context


def make_client(
    namespace: str,
    eventhub_name: str,
    group: str,
    credential: Credential,
    options: EventHubOptions,
    *,
    ssl_context: ssl.SSLContext,
) -> Client:
    """Build a client for one consumer group; it connects nothing by itself."""
    proxy = options.http_proxy
    return EventHubConsumerClient(
        namespace,
        eventhub_name,
        group,
        credential,
        # One policy, and it is ours: the caller of the port decides when to try again.
        retry_total=0,
        retry_backoff_factor=0.0,
        auth_timeout=options.connect_timeout.total_seconds(),
        idle_timeout=options.silence_max.total_seconds(),
        use_tls=options.is_tls_on,
        transport_type=_TRANSPORTS[options.transport],
        custom_endpoint_address=options.custom_endpoint,
        http_proxy=_proxy_settings(proxy) if proxy else None,
        ssl_context=ssl_context,
        user_agent=options.user_agent,
        logging_enable=options.is_wire_logged,
    )


def _proxy_settings(proxy: HttpProxy) -> dict[str, str | int | None]:
    settings: dict[str, str | int | None] = {
        "proxy_hostname": proxy.host,
        "proxy_port": proxy.port,
    }
    if proxy.username:
        settings |= {"username": proxy.username, "password": proxy.password}
    return settings


_TRANSPORTS: Final = {
    Transport.AMQP: TransportType.Amqp,
    Transport.WEBSOCKET: TransportType.AmqpOverWebsocket,
}


def start_of(position: EventPosition) -> str | int | datetime:
    """The position in the client's words; whether it is inclusive is told apart from it."""
    if position.is_latest:
        return "@latest"
    for given in (position.sequence_number, position.enqueued_time, position.offset):
        if given is not None:
            return given
    return "-1"
