"""One client's connection: headers, SASL, open, sessions, heartbeats, close.

Rule 1: invalid input from a client ends its own connection and affects nothing else.
Rule 2: all output that one piece of input causes is written in one call.
"""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Final, Protocol

from eventproc._base.amqp import MalformedError
from eventproc._base.logs import get_logger
from eventproc.emulator._amqp import sasl
from eventproc.emulator._amqp.framing import (
    AMQP_FRAME,
    AMQP_HEADER,
    FRAME_SIZE_MAX,
    HEARTBEAT,
    SASL_FRAME,
    SASL_HEADER,
    Frame,
    FrameParser,
    ProtocolHeader,
    encode_frame,
)
from eventproc.emulator._amqp.performatives import (
    AmqpError,
    Begin,
    Close,
    End,
    Open,
    decode_performative,
)
from eventproc.emulator._amqp.refusal import CONNECTION_FORCED, DECODE_ERROR, RefusedError
from eventproc.emulator._faults import Faults
from eventproc.emulator._hub.configuration import EmulatorConfiguration
from eventproc.emulator._hub.hub import Clock, Namespace
from eventproc.emulator._links.interfaces import Access
from eventproc.emulator._links.session import Session

CHANNEL_MAX: Final = 4999
"""The service's value."""

FRAME_SIZE_MIN: Final = 512
"""The smallest frame size that AMQP lets a peer announce."""

OPEN_S: Final = 30.0
"""How long a client may take until it has sent its ``open``. Real ones take milliseconds."""

WRITE_BUFFER_MAX: Final = 1024 * 1024
"""Bytes that wait for a slow client before its links pause."""

_LOG: Final = get_logger("eventproc.emulator")


class ConnectionOwner(Protocol):
    """What a connection needs from its server."""

    configuration: EmulatorConfiguration
    namespace: Namespace
    faults: Faults
    clock: Clock
    connections: set["Connection"]


class Connection(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, server: ConnectionOwner) -> None:
        self._server = server
        self.configuration = server.configuration
        self.namespace = server.namespace
        self.faults = server.faults
        self.access = Access(server.configuration.tokens)
        self.now_ms = server.clock
        self.loop = asyncio.get_running_loop()
        self.peer_frame_size_max = FRAME_SIZE_MIN
        self.is_paused = False
        self._transport: asyncio.Transport | None = None
        self._parser = FrameParser()
        self._outgoing: list[bytes] = []
        self._sessions: dict[int, Session] = {}
        self._ended: set[int] = set()
        self._header: bytes | None = None
        self._authenticated = False
        self._open = False
        self._open_timer: asyncio.TimerHandle | None = None
        self._silence_timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._token_timer: asyncio.TimerHandle | None = None
        self._received_at_s = self._sent_at_s = self.loop.time()
        self._heartbeat_s: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether the client has sent its ``open``."""
        return self._open

    @property
    def sessions(self) -> Iterator[Session]:
        """The sessions that are open."""
        return iter(tuple(self._sessions.values()))

    # --- transport -------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection of a new client."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self.faults.refuses_connections():
            transport.abort()
            return
        transport.set_write_buffer_limits(high=WRITE_BUFFER_MAX)
        self._server.connections.add(self)
        self._open_timer = self.loop.call_later(OPEN_S, self.close)
        self._check_idle()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything that belongs to the connection, whichever side closed it."""
        del exc
        self._server.connections.discard(self)
        timers = (self._open_timer, self._idle_timer, self._silence_timer, self._token_timer)
        for timer in timers:
            if timer is not None:
                timer.cancel()
        for session in self.sessions:
            session.lost()
        self._sessions.clear()
        self._transport = None

    def pause_writing(self) -> None:
        """Pause the links: the client reads more slowly than we send."""
        self.is_paused = True

    def resume_writing(self) -> None:
        """Resume the links: the client has caught up."""
        self.is_paused = False
        for session in self.sessions:
            session.wake()

    def data_received(self, data: bytes) -> None:
        """Handle the frames in the input and write all answers in one call."""
        self._received_at_s = self.loop.time()
        try:
            for item in self._parser.feed(data):
                if self._transport is None or self._transport.is_closing():
                    return
                if isinstance(item, ProtocolHeader):
                    self._take_header(item.raw)
                elif item.body:
                    self._take_frame(item)
        except MalformedError as error:
            _LOG.warning("connection_broken", reason=str(error))
            self.close(RefusedError(DECODE_ERROR, f"{error}.").as_error())
        self.flush()

    # --- protocol --------------------------------------------------------------------------------

    def _take_header(self, header: bytes) -> None:
        if header == SASL_HEADER and self._header is None:
            self.send(SASL_HEADER)
            self.send(sasl.mechanisms_frame())
        elif header == AMQP_HEADER and (self._header is None or self._authenticated):
            self.send(AMQP_HEADER)
        else:  # AMQP: answer an unknown header with a supported one, then close
            self.send(AMQP_HEADER)
            self.close()
            return
        self._header = header

    def _take_frame(self, frame: Frame) -> None:
        if self._header == SASL_HEADER and frame.kind == SASL_FRAME and not self._authenticated:
            self._take_credentials(frame.body)
            return
        if self._header != AMQP_HEADER or frame.kind != AMQP_FRAME:
            raise MalformedError("a frame before its protocol header, or of another protocol")
        performative, payload_at = decode_performative(frame.body)
        match performative:
            case Open() if not self._open:
                self._take_open(performative)
            case _ if not self._open:
                raise MalformedError("a frame before open")
            case Begin() if frame.channel not in self._sessions and frame.channel <= CHANNEL_MAX:
                self._sessions[frame.channel] = Session(self, frame.channel, performative)
                self._ended.discard(frame.channel)
            case End() if frame.channel in self._sessions:
                self._sessions.pop(frame.channel).end()
                self._ended.add(frame.channel)
            case Close():
                self.close()
            case _ if frame.channel in self._sessions:
                session = self._sessions[frame.channel]
                session.receive(performative, frame.body[payload_at:])
            case _ if frame.channel not in self._ended:
                raise MalformedError(f"channel {frame.channel} has no session")
            case _:
                pass  # azure-eventhub ends its session before it detaches the session's links

    def _take_credentials(self, body: bytes) -> None:
        answer, self._authenticated = sasl.answer(body)
        self.send(answer)
        if not self._authenticated:
            self.close()

    def _take_open(self, peer: Open) -> None:
        if peer.max_frame_size < FRAME_SIZE_MIN:
            raise MalformedError(f"max-frame-size {peer.max_frame_size} is below {FRAME_SIZE_MIN}")
        self._open = True
        if self._open_timer is not None:
            self._open_timer.cancel()
        # Larger frames would only let one connection delay the others.
        self.peer_frame_size_max = min(peer.max_frame_size, FRAME_SIZE_MAX)
        if peer.idle_time_out:
            self._heartbeat_s = peer.idle_time_out / 2000
        self.send(
            encode_frame(
                Open(
                    "eventproc-emulator",
                    None,
                    FRAME_SIZE_MAX,
                    CHANNEL_MAX,
                    int(self.configuration.idle_timeout / timedelta(milliseconds=1)),
                ).described()
            )
        )
        self._check_idle()

    def _check_idle(self) -> None:
        """Send a heartbeat if one is due; close a connection that was silent for too long."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        now = self.loop.time()
        idle_s = self.configuration.idle_timeout.total_seconds()
        if now - self._received_at_s > idle_s:
            text = f"The connection was inactive for more than the allowed {idle_s * 1000:.0f} "
            text += "milliseconds and is closed by container."
            self.close(RefusedError(CONNECTION_FORCED, text).as_error())
            self.flush()
            return
        wait_s = idle_s / 4
        if self._heartbeat_s is not None:
            if now - self._sent_at_s >= self._heartbeat_s / 2:
                self.send(HEARTBEAT)
                self.flush()
            wait_s = min(wait_s, self._heartbeat_s / 2)
        self._idle_timer = self.loop.call_later(wait_s, self._check_idle)

    def watch_tokens(self) -> None:
        """End links when their token expires, from now on at the newest expiry."""
        if self._token_timer is not None:
            self._token_timer.cancel()
            self._token_timer = None
        expiry_s = self.access.next_expiry_s()
        if expiry_s is not None:
            # Not before it: a timer may fire a millisecond early.
            wait_s = max(0.0, expiry_s - self.now_ms() / 1000) + 0.01
            self._token_timer = self.loop.call_later(wait_s, self._end_expired)

    def _end_expired(self) -> None:
        for hub in self.access.expired(self.now_ms() / 1000):
            for session in self.sessions:
                session.end_links_of(hub)
        self.flush()
        self.watch_tokens()

    # --- writing ---------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Queue data for the next ``flush``."""
        self._outgoing.append(data)

    def flush(self) -> None:
        """Write the queued data to the transport in one call."""
        if not self._outgoing or self._transport is None:
            return
        silence_s = self.faults.silence_s()
        if silence_s:
            self.is_paused = True
            if self._silence_timer is None:
                self._silence_timer = self.loop.call_later(silence_s, self._resume_output)
            return
        self._sent_at_s = self.loop.time()
        self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()

    def catch_up(self) -> None:
        """Send the output that a fault held back, after the fault has ended."""
        if self._silence_timer is not None:
            self._silence_timer.cancel()
            self._resume_output()
        for session in self.sessions:
            session.wake(at_once=True)

    def _resume_output(self) -> None:
        self._silence_timer = None
        self.flush()
        if self._silence_timer is None:
            self.resume_writing()

    def close(self, error: AmqpError | None = None) -> None:
        """Close the connection; *error* is the reason, unless the client asked for it."""
        if self._transport is None or self._transport.is_closing():
            return
        if self._open:
            self.send(encode_frame(Close(error).described()))
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """Close the socket without an AMQP ``close``."""
        if self._transport is not None:
            self._transport.abort()
