"""Reading one partition ahead of its consumer, and never by more than there is room for.

Rule 1: events are asked for by credit, and credit is granted only for room in the buffer. So the
buffer is bounded although the link is always read, and a slow consumer's link stays alive and
hears at once when it is displaced.
Rule 2: between taking events out of the buffer and returning them there is no ``await``.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final, Protocol

from eventproc.errors import ReceiverDisplacedError, SourceError, SourceUnavailableError
from eventproc.models import LastEnqueued, ReceivedEvent
from eventproc.ports import PartitionReceiver
from eventproc.sources.eventhubs.event import Message, to_last_enqueued, to_received_event

LISTEN_MAX_S: Final = 2.0
"""An idle link is looked after this often: heartbeats are due every minute or so."""

FRAMES_BETWEEN_TURNS: Final = 100
"""After so many frames, some 4 ms of work, others on the event loop get their turn."""


class Link(Protocol):
    """What the receiver needs of a connection: ``vendor.PartitionLink`` has it."""

    @property
    def credit(self) -> int:
        """How many events may still come."""

    async def grant(self, credit: int) -> None:
        """Let so many come from now on."""

    async def listen(self, frames_max: int) -> None:
        """Read frames, and pass on the messages in them."""

    async def close(self) -> None:
        """Let go of the connection; never raises, and again does no harm."""


OpenLink = Callable[[Callable[[Message], None]], Awaitable[Link]]
"""Opens a link that passes its messages to the given function."""


class EventHubReceiver(PartitionReceiver):
    """An open link to one partition. Build it with ``open``."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._buffer: deque[Message] = deque()
        self._arrived = asyncio.Event()
        self._error: SourceError | None = None
        self._newest: Message | None = None
        self._listening: asyncio.Timeout | None = None
        self._link: Link | None = None
        self._reader: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, open_link: OpenLink, *, room: int) -> "EventHubReceiver":
        """Open the link and begin to read ahead, at most ``room`` events."""
        receiver = cls(room)
        receiver._link = await open_link(receiver._keep)
        receiver._reader = asyncio.create_task(receiver._read(receiver._link))
        return receiver

    async def receive(self, *, events_max: int, wait_max: timedelta) -> Sequence[ReceivedEvent]:
        await asyncio.sleep(0)  # others get their turn, even where there is always something
        if not self._buffer and self._error is None and wait_max > timedelta(0):
            self._arrived.clear()
            try:
                async with asyncio.timeout(wait_max.total_seconds()):
                    await self._arrived.wait()
            except TimeoutError:
                return ()
        # What a displaced receiver still has will come to its successor too: a duplicate less.
        if self._error is not None and (
            not self._buffer or isinstance(self._error, ReceiverDisplacedError)
        ):
            raise self._error
        messages = [self._buffer.popleft() for _ in range(min(events_max, len(self._buffer)))]
        self._ask_for_more()
        return [to_received_event(message) for message in messages]

    async def close(self) -> None:
        self._end(SourceUnavailableError("the receiver is closed"))
        self._buffer.clear()
        if self._reader is not None and self._link is not None:
            self._reader.cancel()
            await asyncio.wait((self._reader,))
            await self._link.close()  # a reader that never had its turn could not

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        return None if self._newest is None else to_last_enqueued(self._newest)

    @property
    def is_over(self) -> bool:
        """Whether it will never again read from its partition."""
        return self._error is not None

    def _keep(self, message: Message) -> None:
        self._buffer.append(message)
        self._newest = message
        self._arrived.set()

    async def _read(self, link: Link) -> None:
        """Read until the link ends or the receiver is closed; then let go of the link."""
        try:
            while True:
                if self._is_credit_due(link):
                    await link.grant(self._room - len(self._buffer))
                frames_max = min(max(link.credit - self._room // 2, 1), FRAMES_BETWEEN_TURNS)
                try:
                    async with asyncio.timeout(LISTEN_MAX_S) as self._listening:
                        await link.listen(frames_max)
                except TimeoutError:
                    continue
                finally:
                    self._listening = None
                await asyncio.sleep(0)
        except SourceError as error:
            self._end(error)
        finally:
            self._end(SourceUnavailableError("the reader stopped"))
            await link.close()

    def _end(self, error: SourceError) -> None:
        """Read no more; the first reason stays."""
        if self._error is None:
            self._error = error
        self._arrived.set()

    def _is_credit_due(self, link: Link) -> bool:
        """Whether the service may soon run out of credit although there is room for more.

        Not for each event, which would cost a frame for each, and not only when all is used up,
        which would cost a round trip of silence.
        """
        half = self._room // 2
        new = self._room - len(self._buffer) - link.credit
        return link.credit <= half and new >= max(half, 1)

    def _ask_for_more(self) -> None:
        """Have the reader look up from the link if there is room again."""
        link, listening = self._link, self._listening
        if link is not None and listening is not None and self._is_credit_due(link):
            self._listening = None  # once is enough
            listening.reschedule(0)
