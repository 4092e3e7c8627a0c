"""A client that speaks AMQP frame by frame, to do what Azure's clients never do."""

import asyncio
from contextlib import asynccontextmanager, suppress

from eventproc.emulator._amqp.encoding import encode
from eventproc.emulator._amqp.framing import (
    AMQP_HEADER,
    Frame,
    FrameParser,
    ProtocolHeader,
    encode_frame,
)
from eventproc.emulator._amqp.performatives import (
    Attach,
    Begin,
    Detach,
    Flow,
    Open,
    Source,
    Target,
    Transfer,
    decode_performative,
)
from eventproc.emulator._amqp.values import Described, Symbol, ULong, Value

TIMEOUT_S = 30.0


class Peer:
    """One connection, which sends and receives performatives."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._parser = FrameParser(2**31)
        self._items: list[ProtocolHeader | Frame] = []
        self._reading: asyncio.Future[bytes] | None = None

    def write(self, *performatives, channel=0, payload=b""):
        """Send performatives; the payload belongs to the last."""
        for index, performative in enumerate(performatives):
            is_last = index == len(performatives) - 1
            body = performative.described() + (payload if is_last else b"")
            self.writer.write(encode_frame(body, channel))

    async def item(self, timeout_s=TIMEOUT_S):
        """Return the next header or frame; ``None`` when the connection has ended.

        A time-out cancels nothing: the next call waits for the same bytes.
        """
        while not self._items:
            if self._reading is None:
                self._reading = asyncio.ensure_future(self.reader.read(65_536))
            await asyncio.wait({self._reading}, timeout=timeout_s)
            if not self._reading.done():
                raise TimeoutError(f"nothing came for {timeout_s} s")
            reading, self._reading = self._reading, None
            if isinstance(reading.exception(), ConnectionResetError):
                return None  # cut rather than closed
            if not reading.result():
                return None
            self._items.extend(self._parser.feed(reading.result()))
        return self._items.pop(0)

    def cancel_reading(self):
        """Cancel a read that is under way."""
        if self._reading is not None:
            self._reading.cancel()

    async def frame(self, timeout_s=TIMEOUT_S):
        """Return the next performative and its payload, without heartbeats."""
        while True:
            item = await self.item(timeout_s)
            if item is None:
                return None, b""
            if isinstance(item, Frame) and item.body:
                performative, at = decode_performative(item.body)
                return performative, item.body[at:]

    async def next(self, kind):
        """Return the next performative of a kind and its payload, and drop those before it."""
        while True:
            performative, payload = await self.frame()
            assert performative is not None, f"the connection ended before {kind.__name__}"
            if isinstance(performative, kind):
                return performative, payload

    async def has_ended(self):
        """Wait for the end of the connection."""
        while await self.item() is not None:
            pass
        return True

    async def is_silent_for(self, seconds):
        """Return whether only heartbeats come for *seconds*."""
        try:
            performative, _ = await self.frame(seconds)
        except TimeoutError:
            return True
        return performative is None

    async def send_to(self, address, handle=0):
        """Attach a sending link, and wait until it may send."""
        self.write(
            Attach(
                f"send-{handle}",
                handle,
                role=False,
                source=Source("here"),
                target=Target(address),
                initial_delivery_count=0,
            )
        )
        attach, _ = await self.next(Attach)
        if attach.target is not None:
            await self.next(Flow)
        return attach

    async def receive_from(self, address, handle=1, *, credit=None, selector=None, **fields):
        """Attach a receiving link, and grant it credit."""
        filters: dict[Value, Value] = {}
        if selector:
            name = Symbol("apache.org:selector-filter:string")
            filters = {name: Described(name, selector)}
        self.write(
            Attach(
                f"receive-{handle}",
                handle,
                role=True,
                source=Source(address, filter=filters),
                target=Target("here"),
                **fields,
            )
        )
        attach, _ = await self.next(Attach)
        if credit is not None:
            self.write(Flow(0, 1000, 0, 1000, handle, 0, credit))
        return attach

    async def refusal(self, attach_future):
        """Attach, and return the error of the detach that answers it."""
        attach = await attach_future
        assert attach.source is None
        assert attach.target is None
        detach, _ = await self.next(Detach)
        return detach.error

    def transfer(self, body, delivery_id=0, handle=0, **fields):
        """Send one event with a data section."""
        self.write(
            Transfer(handle, delivery_id, b"%d" % delivery_id, 0, **fields), payload=message(body)
        )


def message(body):
    """Encode a message of one data section."""
    return encode(Described(ULong(0x75), body))


@asynccontextmanager
async def raw(port):
    """Yield a connection on which nothing was sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    peer = Peer(reader, writer)
    try:
        yield peer
    finally:
        peer.cancel_reading()
        writer.close()
        with suppress(OSError):  # the emulator was first
            await writer.wait_closed()


@asynccontextmanager
async def connected(port, *, frame_size_max=65_536, window=10_000, idle_time_out=None):
    """Yield a connection with a session on channel 0."""
    async with raw(port) as peer:
        peer.writer.write(AMQP_HEADER)
        peer.write(
            Open("peer", "127.0.0.1", frame_size_max, idle_time_out=idle_time_out),
            Begin(None, 0, window, 10_000),
        )
        await peer.next(Begin)
        yield peer
