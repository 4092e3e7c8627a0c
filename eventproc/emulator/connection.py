"""One client's connection: headers, SASL, open, sessions, heartbeats, close.

Rule 1: whatever a client sends, the worst that happens is the end of its own connection.
Rule 2: what one piece of input leads to is written in one piece of output.
"""

import asyncio
import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Final, Protocol

from eventproc.emulator import sasl
from eventproc.emulator.configuration import EmulatorConfiguration
from eventproc.emulator.decoding import MalformedError
from eventproc.emulator.faults import Faults
from eventproc.emulator.framing import (
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
from eventproc.emulator.hub import Clock, Namespace
from eventproc.emulator.performatives import (
    AmqpError,
    Begin,
    Close,
    End,
    Open,
    decode_performative,
)
from eventproc.emulator.refusal import CONNECTION_FORCED, DECODE_ERROR, RefusedError
from eventproc.emulator.session import Session

CHANNEL_MAX: Final = 4999
"""The service's value."""

FRAME_SIZE_MIN: Final = 512
"""Below this AMQP does not allow a peer to go."""

WRITE_BUFFER_MAX: Final = 1024 * 1024
"""Bytes a slow client may leave on our side before its links pause."""

_LOG: Final = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())  # silent until the program configures logging


class ConnectionOwner(Protocol):
    """What a connection needs of the server it belongs to."""

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
        self._silence: asyncio.TimerHandle | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._heard = self._spoke = self.loop.time()
        self._heartbeat_s: float | None = None

    @property
    def sessions(self) -> Iterator[Session]:
        """The sessions that are open."""
        return iter(tuple(self._sessions.values()))

    # --- the transport's side --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self.faults.refuses_connections():
            transport.abort()
            return
        transport.set_write_buffer_limits(high=WRITE_BUFFER_MAX)
        self._server.connections.add(self)
        self._look_after()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone, or we are done with it."""
        del exc
        self._server.connections.discard(self)
        for timer in (self._watch, self._silence):
            if timer is not None:
                timer.cancel()
        for session in self.sessions:
            session.lost()
        self._sessions.clear()
        self._transport = None

    def pause_writing(self) -> None:
        """The client reads more slowly than we send."""
        self.is_paused = True

    def resume_writing(self) -> None:
        """The client caught up."""
        self.is_paused = False
        for session in self.sessions:
            session.wake()

    def data_received(self, data: bytes) -> None:
        """Take what came, answer it in one go."""
        self._heard = self.loop.time()
        try:
            for item in self._parser.feed(data):
                if self._transport is None or self._transport.is_closing():
                    return
                if isinstance(item, ProtocolHeader):
                    self._take_header(item.raw)
                elif item.body:
                    self._take_frame(item)
        except MalformedError as error:
            _LOG.warning("connection_broken", extra={"reason": str(error)})
            self.close(RefusedError(DECODE_ERROR, f"{error}.").as_error())
        self.flush()

    # --- the protocol's side ---------------------------------------------------------------------

    def _take_header(self, header: bytes) -> None:
        if header == SASL_HEADER and self._header is None:
            self.send(SASL_HEADER)
            self.send(sasl.mechanisms_frame())
        elif header == AMQP_HEADER and (self._header is None or self._authenticated):
            self.send(AMQP_HEADER)
        else:  # the answer to a header one does not know is the one that one knows, and the end
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
                pass  # azure-eventhub ends its session first and detaches its links afterwards

    def _take_credentials(self, body: bytes) -> None:
        answer, self._authenticated = sasl.answer(body)
        self.send(answer)
        if not self._authenticated:
            self.close()

    def _take_open(self, peer: Open) -> None:
        if peer.max_frame_size < FRAME_SIZE_MIN:
            raise MalformedError(f"max-frame-size {peer.max_frame_size} is below {FRAME_SIZE_MIN}")
        self._open = True
        # Frames beyond our own limit would only make one connection hold up the others.
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
        self._look_after()

    def _look_after(self) -> None:
        """Send a heartbeat if one is due; end a connection that has been silent for too long."""
        if self._watch is not None:
            self._watch.cancel()
        now = self.loop.time()
        idle_s = self.configuration.idle_timeout.total_seconds()
        if now - self._heard > idle_s:
            text = f"The connection was inactive for more than the allowed {idle_s * 1000:.0f} "
            text += "milliseconds and is closed by container."
            self.close(RefusedError(CONNECTION_FORCED, text).as_error())
            self.flush()
            return
        wait_s = idle_s / 4
        if self._heartbeat_s is not None:
            if now - self._spoke >= self._heartbeat_s / 2:
                self.send(HEARTBEAT)
                self.flush()
            wait_s = min(wait_s, self._heartbeat_s / 2)
        self._watch = self.loop.call_later(wait_s, self._look_after)

    # --- writing ---------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Write with the next ``flush``."""
        self._outgoing.append(data)

    def flush(self) -> None:
        """Hand what was sent to the transport, all at once."""
        if not self._outgoing or self._transport is None:
            return
        silence_s = self.faults.silence_s()
        if silence_s:
            self.is_paused = True
            if self._silence is None:
                self._silence = self.loop.call_later(silence_s, self._speak_again)
            return
        self._spoke = self.loop.time()
        self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()

    def catch_up(self) -> None:
        """Let out what a fault held back, now that the fault is over."""
        if self._silence is not None:
            self._silence.cancel()
            self._speak_again()
        for session in self.sessions:
            session.wake(at_once=True)

    def _speak_again(self) -> None:
        self._silence = None
        self.flush()
        if self._silence is None:
            self.resume_writing()

    def close(self, error: AmqpError | None = None) -> None:
        """End the connection, with the reason if it is not the client's wish."""
        if self._transport is None or self._transport.is_closing():
            return
        if self._open:
            self.send(encode_frame(Close(error).described()))
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """Cut the line, without a word."""
        if self._transport is not None:
            self._transport.abort()
