# ruff: noqa: SLF001 - this is the one file that drives Azure's client from within
"""Azure's client, held by the few handles that we need: the only importer of ``azure.eventhub``.

Its public receive methods sleep 50 ms between reads, ask the service for the partition ids before
each start and take a second to stop. So a link is opened by the client (address, credential,
token, TLS, proxy: all genuine) and then *read* by us, frame by frame, without its sleeps, its
keep-alive task or its buffer. ``docs/decisions/0020-which-client.md`` has the figures and the
price: a few private names, which ``check_version`` looks for at the door.

Rule: whatever Azure raises leaves this file as one of ``eventproc.errors``.
"""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, cast

import certifi
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.credentials_async import AsyncTokenCredential
from azure.eventhub import TransportType, __version__
from azure.eventhub.aio import EventHubConsumerClient

from eventproc.errors import (
    ConfigurationError,
    SourceError,
    SourceUnavailableError,
)
from eventproc.models import EventPosition, PartitionProperties
from eventproc.sources.eventhubs.connection_string import HubConnection
from eventproc.sources.eventhubs.event import Message, to_time
from eventproc.sources.eventhubs.options import EventHubOptions, HttpProxy, Transport
from eventproc.sources.eventhubs.refusal import as_text, error_for, translated

Client = EventHubConsumerClient
Credential = AsyncTokenCredential | AzureNamedKeyCredential | AzureSasCredential

_CLOSE_MAX_S: Final = 0.5
"""What a goodbye may take; the service needs none."""

_FIRST_STATUS_OF_REFUSAL: Final = 400


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


class Conversation:
    """One of Azure's AMQP clients on a connection of its own, opened and closed without sleeps."""

    def __init__(self, what: str, handler: Any) -> None:  # noqa: ANN401 - a private class of Azure's
        self.what = what
        self.handler = handler
        self._refusal: SourceError | None = None

    async def open(self) -> None:
        """Connect, sign in and attach.

        Raises:
            SourceUnavailableError: the service does not answer, or not now.
            SourceRejectedError: it refuses for good.
        """
        handler = self.handler
        _expect(handler, "open_async", "client_ready_async", "close_async", "_keep_alive_interval")
        # The keep-alive task would read from the same connection as we do, out of turn, and make
        # every close wait for a second. ``listen`` sends the heartbeats that are due.
        handler._keep_alive_interval = None
        try:
            with translated(self.what):
                await handler.open_async()
                self._overhear_refusal()
                while not await handler.client_ready_async():
                    pass  # each call reads one frame, or waits for it
                _expect(handler._connection, "listen", "close", "_transport")
        except SourceError as error:
            await self.close()
            raise (self._refusal or error) from error.__cause__
        except BaseException:
            await self.close()
            raise

    def _overhear_refusal(self) -> None:
        """Keep what the service says when it does not take the token; the client forgets it."""
        authenticator = self.handler._cbs_authenticator
        _expect(authenticator, "_on_execute_operation_complete")
        completed = authenticator._on_execute_operation_complete

        async def overheard(
            result: object, status: int, text: object, message: object, condition: object = None
        ) -> None:
            if condition is not None:
                self._refusal = error_for(
                    f"{self.what}: the service does not take the credential",
                    as_text(text) or as_text(condition),
                    condition=as_text(condition),
                    status=status,
                )
            await completed(result, status, text, message, condition)

        authenticator._on_execute_operation_complete = overheard

    async def close(self) -> None:
        """Say goodbye and disconnect, without waiting for the other side.

        Never raises, and again does no harm.
        """
        connection = self.handler._connection
        if connection is None:
            return
        with translated(self.what, is_silent=True):
            async with asyncio.timeout(_CLOSE_MAX_S):
                await self.handler.close_async()
        # A connection that is half open or broken is left behind by that.
        transport = connection._transport
        with translated(self.what, is_silent=True):
            async with asyncio.timeout(_CLOSE_MAX_S):
                await transport.close()
        with translated(self.what, is_silent=True):
            if transport.writer is not None:  # the other side takes nothing, not even a goodbye
                transport.writer.transport.abort()


class PartitionLink:
    """One AMQP link to one partition, driven by hand. One caller at a time.

    It asks the service for nothing until ``grant`` says how many events there is room for.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._handler = conversation.handler
        _expect(self._handler._link, "current_link_credit", "flow", "state")
        _expect(self._handler._link, "_received_delivery_tags")

    @classmethod
    async def open(
        cls,
        client: Client,
        group: str,
        partition_id: str,
        position: EventPosition,
        on_message: Callable[[Message], None],
        *,
        owner_level: int | None,
    ) -> "PartitionLink":
        """Connect and attach at the position, displacing other receivers if it has an owner level.

        Raises:
            SourceUnavailableError: the service does not answer, or not now.
            SourceRejectedError: it refuses for good.
        """

        async def deliver(message: object) -> None:
            on_message(cast("Message", message))

        what = f"opening a receiver for partition {partition_id!r} of consumer group {group!r}"
        with translated(what):
            consumer = client._create_consumer(
                group,
                partition_id,
                _start(position),
                _unused,
                owner_level=owner_level,
                event_position_inclusive=position.is_inclusive,
                track_last_enqueued_event_properties=True,
            )
            consumer._create_handler(await client._create_auth_async(auth_uri=client._auth_uri))
            _expect(consumer._handler, "_message_received_callback", "_link")
            consumer._handler._message_received_callback = deliver  # type: ignore[union-attr]
        conversation = Conversation(what, consumer._handler)
        await conversation.open()
        conversation.what = f"receiving from partition {partition_id!r} of consumer group {group!r}"
        return cls(conversation)

    @property
    def credit(self) -> int:
        """How many events the service may still send."""
        return int(self._handler._link.current_link_credit)

    async def grant(self, credit: int) -> None:
        """Allow the service to send this many events from now on."""
        with translated(self._conversation.what):
            await self._handler._link.flow(link_credit=credit)

    async def listen(self, frames_max: int) -> None:
        """Read up to so many frames, waiting for each; events go to ``on_message``.

        It also renews the token and sends the heartbeats that are due, so call it again and again,
        each time for no longer than a few seconds. A cancelled call loses nothing.

        Raises:
            ReceiverDisplacedError: another receiver took the link.
            SourceUnavailableError: the link broke.
            SourceRejectedError: the service refuses for good.
        """
        with translated(self._conversation.what):
            if await self._handler.client_ready_async():
                await self._handler._connection.listen(wait=True, batch=frames_max)
            elif self._handler._link.state.name != "ATTACHED":  # the session ended without a word
                raise SourceUnavailableError(f"{self._conversation.what}: the link was detached")
        # The client keeps the tag of every delivery for the life of the link (some 80 bytes for
        # each event), to settle it; Event Hubs knows no settling.
        self._handler._link._received_delivery_tags.clear()

    async def close(self) -> None:
        """Detach and disconnect. Never raises."""
        await self._conversation.close()


async def ask_partition_ids(client: Client) -> Sequence[str]:
    """Ask the service which partitions the hub has."""
    what = f"asking event hub {client.eventhub_name!r} for its partitions"
    (answer,) = await _ask(client, what, b"com.microsoft:eventhub", {})
    return tuple(as_text(partition_id) for partition_id in answer[b"partition_ids"])


async def ask_partitions(
    client: Client, partition_ids: Sequence[str]
) -> Sequence[PartitionProperties]:
    """Ask the service where partitions begin and end, all on one connection."""
    named = ", ".join(repr(partition_id) for partition_id in partition_ids)
    what = f"asking event hub {client.eventhub_name!r} for its partition {named}"
    questions = [{"partition": partition_id} for partition_id in partition_ids]
    answers = await _ask(client, what, b"com.microsoft:partition", *questions)
    return tuple(map(_properties, partition_ids, answers))


def _properties(partition_id: str, answer: dict[bytes, Any]) -> PartitionProperties:
    last = int(answer[b"last_enqueued_sequence_number"])
    return PartitionProperties(
        partition_id=partition_id,
        beginning_sequence_number=int(answer[b"begin_sequence_number"]),
        last_enqueued_sequence_number=last,
        last_enqueued_offset=as_text(answer[b"last_enqueued_offset"]),
        last_enqueued_time=to_time(answer[b"last_enqueued_time_utc"]) if last >= 0 else None,
        is_empty=bool(answer[b"is_partition_empty"]),
    )


async def _ask(
    client: Client, what: str, kind: bytes, *questions: dict[str, str]
) -> list[dict[bytes, Any]]:
    """Have questions of one kind answered, on a connection of their own, as Azure's client does.

    Its own method for this sleeps eight times 50 ms, and connects for each.
    """
    amqp: Any = client._amqp_transport
    with translated(what):
        auth = await client._create_auth_async()
        handler = amqp.create_mgmt_client(client._address, mgmt_auth=auth, config=client._config)
    conversation = Conversation(what, handler)
    await conversation.open()
    answers = []
    try:
        with translated(what):
            token = await amqp.get_updated_token_async(auth)
            for details in questions:
                question = {"name": client.eventhub_name, "security_token": token} | details
                status, text, answer = await amqp.mgmt_client_request_async(
                    handler,
                    amqp.build_message(application_properties=question),
                    operation=b"READ",
                    operation_type=kind,
                    status_code_field=b"status-code",
                    description_fields=b"status-description",
                )
                if int(status) >= _FIRST_STATUS_OF_REFUSAL:
                    said = f"{as_text(text)} (status {status})"
                    raise error_for(what, said, status=int(status))
                answers.append(cast("dict[bytes, Any]", answer.value))
    finally:
        await conversation.close()
    return answers


def _expect(vendor_object: object, *names: str) -> None:
    """Refuse a release of Azure's client that lacks what we drive it by."""
    missing = [name for name in names if not hasattr(vendor_object, name)]
    if missing:
        raise ConfigurationError(
            f"azure-eventhub {__version__} is not supported: {type(vendor_object).__name__} has no "
            f"{', '.join(missing)}. Install a release that eventproc names in its requirements"
        )


def _start(position: EventPosition) -> str | int | datetime:
    """The position in the client's words; whether it is inclusive is told apart from it."""
    if position.is_latest:
        return "@latest"
    for given in (position.sequence_number, position.enqueued_time, position.offset):
        if given is not None:
            return given
    return "-1"


async def _unused(*_: object) -> None:
    """Stand in for a callback that the client asks for and that is never called."""
