# ruff: noqa: SLF001 - this module uses private names of Azure's client
"""Everything that uses private names of Azure's client.

The client's public receive methods sleep 50 ms between reads, request the partition ids before each
start and take a second to stop; decoding costs 20 us and more for each event. So the client opens
the link (address, credential, token, TLS, proxy), and this module reads from it, without the
client's sleeps, keep-alive task, buffer and decoder (measurements: ``docs/decisions/``). It depends
on about forty private names. If one is missing, the source uses ``_public_path.py`` instead.

Rule: every exception of Azure's client leaves this module as one of ``eventproc.errors``.
"""

import asyncio
import time
from collections.abc import Sequence
from io import BytesIO
from typing import Any, Final, cast

from azure.eventhub import __version__

from eventproc.errors import SourceError, SourceUnavailableError
from eventproc.models import EventPosition
from eventproc.sources.eventhubs._client import Client, start_of
from eventproc.sources.eventhubs._direct_path.frames import FrameParser, ParsedFrames, Parser
from eventproc.sources.eventhubs._errors import UnexpectedShapeError, as_text, error_for, translated

TRIED_RELEASES: Final = ("5.15.",)
"""Prefixes of the releases of ``azure-eventhub`` that this module was tested with."""

MAINTAIN_EVERY_S: Final = 1.0
"""Shortest time between two runs of ``maintain``; tokens and heartbeats are due less often."""

TOKEN_RENEWAL_S: Final = 240.0
"""The link presents a new token this long before the former one expires, or after 60 % of its
lifetime if that is later; Azure's client waits for 90 %. ``_base/identity.py`` requests tokens a
minute earlier, so the new one is available by then."""

BYTES_AT_ONCE: Final = 256 * 1024

_SERIAL: Final = 0xFFFFFFFF
"""Mask for AMQP's serial numbers: delivery and transfer ids wrap at 2**32."""

_CLOSE_MAX_S: Final = 0.5
"""Longest time for an orderly close, which the service does not need."""

_NOT_FOUND: Final = 404
_NOT_TAKEN: Final = "the service does not take the credential"


class AmqpClient:
    """An AMQP client of Azure's on its own connection, opened and closed without sleeps."""

    def __init__(self, what: str, handler: Any) -> None:  # noqa: ANN401 - a private class of Azure's
        self.what = what
        self.handler = handler
        self.refusal: SourceError | None = None
        """Why the service refused the newest token."""

    async def open(self) -> None:
        """Connect, authenticate and attach the link.

        Raises:
            SourceUnavailableError: the service does not answer, or fails temporarily.
            SourceRejectedError: the service refuses permanently.
        """
        handler = self.handler
        _expect(handler, "open_async", "client_ready_async", "close_async", "_keep_alive_interval")
        _expect(handler, "_cbs_authenticator", "_connection", "_session")
        # Disable the keep-alive task: it would read from the connection concurrently, and make
        # every close wait for a second. ``maintain`` sends the heartbeats that are due.
        handler._keep_alive_interval = None
        try:
            with translated(self.what):
                await handler.open_async()
                self._capture_refusal()
                while not await handler.client_ready_async():
                    pass  # each call reads one frame
                _expect(handler._connection, "listen", "close", "_transport")
        except SourceError as error:
            await self.close()
            raise (self.refusal or error) from error.__cause__
        except BaseException:
            await self.close()
            raise

    def _capture_refusal(self) -> None:
        """Keep the service's reason for refusing a token, which the client does not report."""
        authenticator = self.handler._cbs_authenticator
        _expect(authenticator, "_on_execute_operation_complete")
        completed = authenticator._on_execute_operation_complete

        async def on_complete(
            result: object, status: int, text: object, message: object, condition: object = None
        ) -> None:
            if condition is not None:
                # The token is for one hub, so the service reports here that it does not exist.
                reason = "there is no such event hub" if status == _NOT_FOUND else _NOT_TAKEN
                self.refusal = error_for(
                    f"{self.what}: {reason}",
                    as_text(text) or as_text(condition),
                    condition=as_text(condition),
                    status=status,
                )
            await completed(result, status, text, message, condition)

        authenticator._on_execute_operation_complete = on_complete

    async def close(self) -> None:
        """Send a close and disconnect, without waiting for the service's answer.

        Never raises, and may be called more than once.
        """
        connection = self.handler._connection
        if connection is None:
            return
        with translated(self.what, is_silent=True):
            async with asyncio.timeout(_CLOSE_MAX_S):
                await self.handler.close_async()
        # ``close_async`` does not close a connection that is half open or broken.
        transport = getattr(connection, "_transport", None)
        if transport is None:
            return  # Either it is closed, or this is an unknown release, which ``open`` says.
        with translated(self.what, is_silent=True):
            async with asyncio.timeout(_CLOSE_MAX_S):
                await transport.close()
        with translated(self.what, is_silent=True):
            if getattr(transport, "session", None) is not None:  # a websocket
                await transport.session.close()
            elif transport.writer is not None:  # the service does not read any more
                transport.writer.transport.abort()


class PartitionLink:
    """One AMQP link to one partition, for one caller at a time.

    The service sends no events before ``grant``. Bytes are read in large pieces, by ``listen``.
    ``events_in`` extracts the encoded events. All other frames go into the client's read buffer,
    and ``attend`` lets the client process them as if it had read them itself.
    """

    def __init__(self, amqp_client: AmqpClient) -> None:
        """Take over an AMQP client whose link is attached."""
        self._amqp_client = amqp_client
        handler = amqp_client.handler
        _expect(handler, "_link")
        self._authenticator = handler._cbs_authenticator
        self._connection = connection = handler._connection
        self._link = link = handler._link
        self._session = session = handler._session
        self._transport = transport = connection._transport
        _expect(self._authenticator, "handle_token", "_expires_on", "_refresh_window")
        _expect(self._authenticator, "_token_put_time")
        _expect(connection, "_error", "_incoming_endpoints", "_last_frame_received_time")
        _expect(connection, "_read_frame", "listen", "state")
        _expect(link, "current_link_credit", "delivery_count", "flow", "get_state", "remote_handle")
        _expect(session, "incoming_window", "next_incoming_id", "remote_outgoing_window")
        _expect(session, "target_incoming_window", "_outgoing_flow")
        self._is_websocket = hasattr(transport, "session")
        _expect(transport, "_read_buffer", "sock" if self._is_websocket else "reader")
        (channel,) = (
            channel for channel, known in connection._incoming_endpoints.items() if known is session
        )
        self.parser: Parser = FrameParser(channel, link.remote_handle)
        self._maintained_at = 0.0
        self._unattended_count = 0
        """How many frames in the client's read buffer are for the client."""

    @classmethod
    async def open(
        cls,
        client: Client,
        group: str,
        partition_id: str,
        position: EventPosition,
        *,
        owner_level: int | None,
        tracks_last_enqueued: bool = True,
    ) -> "PartitionLink":
        """Connect and attach at the position. With an owner level, displace other receivers.

        Raises:
            SourceUnavailableError: the service does not answer, or fails temporarily.
            SourceRejectedError: the service refuses permanently.
            UnexpectedShapeError: the client lacks a private name.
        """
        what = f"opening a receiver for partition {partition_id!r} of consumer group {group!r}"
        with translated(what):
            consumer: Any = client._create_consumer(
                group,
                partition_id,
                start_of(position),
                _unused,
                owner_level=owner_level,
                event_position_inclusive=position.is_inclusive,
                track_last_enqueued_event_properties=tracks_last_enqueued,
            )
            _expect(consumer, "_create_handler")
            consumer._create_handler(await client._create_auth_async(auth_uri=client._auth_uri))
            _expect(consumer, "_handler")
        amqp_client = AmqpClient(what, consumer._handler)
        await amqp_client.open()
        amqp_client.what = f"receiving from partition {partition_id!r} of consumer group {group!r}"
        try:
            return cls(amqp_client)
        except BaseException:
            await amqp_client.close()
            raise

    @property
    def credit(self) -> int:
        """How many events the service may still send."""
        return int(self._link.current_link_credit)

    async def grant(self, credit: int) -> None:
        """Allow the service to send this many events from now on, more or less than before."""
        with translated(self._amqp_client.what):
            await self._link.flow(link_credit=credit)

    async def maintain(self, *, is_reading: bool = True) -> None:
        """Renew the token, send the heartbeats that are due, and check the link.

        Call it every few seconds; it acts at most once a second. If *is_reading* is false, a
        connection without new bytes does not count as broken.

        Raises:
            ReceiverDisplacedError: another receiver took the link.
            SourceUnavailableError: the link broke.
            SourceRejectedError: the service refuses permanently.
        """
        now = time.time()
        if 0 <= now - self._maintained_at < MAINTAIN_EVERY_S:
            return
        self._maintained_at = now
        if not is_reading:
            self._connection._last_frame_received_time = now
        with translated(self._amqp_client.what):
            await self._connection.listen(batch=0)  # heartbeats and time-outs, without reading
            await self._present_token()
            self._check()

    async def _present_token(self) -> None:
        """Present a new token before the former one expires."""
        authenticator = self._authenticator
        put_at, expires_at = authenticator._token_put_time, authenticator._expires_on
        if put_at is not None and expires_at is not None:
            early_s = min(TOKEN_RENEWAL_S, 0.4 * (expires_at - put_at))
            authenticator._refresh_window = max(authenticator._refresh_window, early_s)
        try:
            await authenticator.handle_token()
        except Exception as error:
            if self._amqp_client.refusal is None:
                raise
            raise self._amqp_client.refusal from error

    async def listen(self) -> bytes:
        """Wait for bytes and return them, for ``events_in``. A cancelled call loses no bytes.

        Raises:
            SourceUnavailableError: the connection broke.
        """
        with translated(self._amqp_client.what):
            if self._is_websocket:
                data = await self._transport.sock.receive_bytes()
            else:
                data = await self._transport.reader.read(BYTES_AT_ONCE)
            if not data:
                raise SourceUnavailableError(
                    f"{self._amqp_client.what}: the connection was closed without a reason"
                )
        return cast("bytes", data)

    def events_in(self, data: bytes) -> Sequence[bytes]:
        """Return the encoded events in bytes of ``listen``; the rest is for ``attend``.

        Raises:
            SourceUnavailableError: the bytes are not AMQP.
        """
        transport = self._transport
        with translated(self._amqp_client.what):
            data = transport._read_buffer.read() + data
            found = self.parser.parse(data)
            transport._read_buffer = BytesIO(b"".join(found.others) + data[found.used :])
            self._connection._last_frame_received_time = time.time()
            self._count(found)
        self._unattended_count += len(found.others)
        return found.payloads

    @property
    def is_attention_due(self) -> bool:
        """Whether ``attend`` has something to do."""
        return self._unattended_count > 0 or self._is_window_due

    @property
    def _is_window_due(self) -> bool:
        session = self._session
        return bool(session.incoming_window <= session.target_incoming_window // 2)

    async def attend(self) -> None:
        """Let the client process its frames, and open the session's window if that is due.

        Raises:
            ReceiverDisplacedError: another receiver took the link.
            SourceUnavailableError: the link broke.
            SourceRejectedError: the service refuses permanently.
        """
        session, count = self._session, self._unattended_count
        if not self.is_attention_due:
            return
        with translated(self._amqp_client.what):
            if self._is_window_due:
                session.incoming_window = session.target_incoming_window
                await session._outgoing_flow()
            self._unattended_count = 0
            for _ in range(count):
                await self._connection._read_frame(wait=True)
            if count:
                self._check()

    def _count(self, found: ParsedFrames) -> None:
        """Update the client's counters, from which it builds its flow frames."""
        link, session = self._link, self._session
        # The service may send events before it learns that credit was reduced.
        link.current_link_credit = max(0, link.current_link_credit - found.delivery_count)
        link.delivery_count = link.delivery_count + found.delivery_count & _SERIAL
        session.next_incoming_id = session.next_incoming_id + found.transfer_count & _SERIAL
        session.remote_outgoing_window -= found.transfer_count
        session.incoming_window -= found.transfer_count

    def _check(self) -> None:
        """Raise if the client noticed the end of the link or the connection."""
        state = self._link.get_state()
        if self._connection._error is not None:
            raise self._connection._error
        if state.name != "ATTACHED":  # the session ended without an error
            raise SourceUnavailableError(f"{self._amqp_client.what}: the link was detached")

    async def close(self) -> None:
        """Detach and disconnect. Never raises."""
        await self._amqp_client.close()


def check(client: Client) -> None:
    """Check the client's release and those private names that need no connection.

    Raises:
        UnexpectedShapeError: the release was not tested, or a name is missing.
    """
    if not __version__.startswith(TRIED_RELEASES):
        raise UnexpectedShapeError(f"azure-eventhub {__version__} was not tested")
    _expect(client, "_create_consumer", "_create_auth_async", "_auth_uri", "_address", "_config")
    _expect(client, "_amqp_transport")
    _expect(
        client._amqp_transport,
        "build_message",
        "create_mgmt_client",
        "get_updated_token_async",
        "mgmt_client_request_async",
    )


def _expect(vendor_object: object, *names: str) -> None:
    """Raise ``UnexpectedShapeError`` if an object of Azure's client lacks one of the names."""
    missing = [name for name in names if not hasattr(vendor_object, name)]
    if missing:
        raise UnexpectedShapeError(
            f"{type(vendor_object).__name__} of azure-eventhub {__version__} has no "
            f"{', '.join(missing)}"
        )


async def _unused(*_: object) -> None:
    """A callback that the client requires and never calls."""
