"""Reading one partition ahead of its consumer, and never by more than there is room for.

Rule 1: events are asked for by credit, and credit is granted only for room in the buffer. So the
buffer is bounded although the link is read all the time, and a slow consumer's link stays alive
and hears at once when it is displaced.
Rule 2: between taking events out of the buffer and returning them there is no ``await``.
Rule 3: what waits is encoded. It becomes events when somebody receives them.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final, Protocol

from eventproc.errors import ReceiverDisplacedError, SourceError, SourceUnavailableError
from eventproc.models import LastEnqueued, ReceivedEvent
from eventproc.ports import PartitionReceiver
from eventproc.sources.eventhubs.credit import Credit
from eventproc.sources.eventhubs.wire_event import EventReader, last_enqueued_in

LISTEN_MAX_S: Final = 2.0
"""An idle link is looked after this often: heartbeats are due every minute or so."""


class Link(Protocol):
    """What the receiver needs of a connection: ``inside.PartitionLink`` has it."""

    @property
    def credit(self) -> int:
        """How many events may still come."""

    async def grant(self, credit: int) -> None:
        """Let so many come from now on."""

    async def look_after(self, *, is_reading: bool = True) -> None:
        """Keep the link alive."""

    async def listen(self) -> bytes:
        """Wait until something comes."""

    async def take(self, data: bytes) -> None:
        """Pass on the events in what came."""

    async def close(self) -> None:
        """Let go of the connection; never raises, and again does no harm."""


OnPayloads = Callable[[Sequence[bytes]], None]
OpenLink = Callable[[OnPayloads], Awaitable[Link]]
"""Opens a link that passes encoded events to the given function."""


class EventHubReceiver(PartitionReceiver):
    """An open link to one partition. Build it with ``open``."""

    def __init__(self, credit: Credit) -> None:
        """Hold what the account allows."""
        self._account = credit
        self._buffer: deque[bytes] = deque()
        self._events = EventReader()
        self._arrived = asyncio.Event()
        self._error: SourceError | None = None
        self._newest: bytes | None = None
        """The event that came last."""
        self._told: tuple[bytes | None, LastEnqueued | None] = (None, None)
        """The event that was last asked what it tells of the partition's end, and the answer."""
        self._waiting: asyncio.Timeout | None = None
        self._is_resting = False
        self._link: Link | None = None
        self._reader: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, open_link: OpenLink, *, room: int, room_bytes: int) -> "EventHubReceiver":
        """Open the link and begin to read ahead, at most ``room`` events and ``room_bytes``."""
        receiver = cls(Credit(room, room_bytes))
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
        take = self._buffer.popleft
        payloads = [take() for _ in range(min(events_max, len(self._buffer)))]
        self._account.remove(len(payloads), sum(map(len, payloads)))
        self._ask_for_more()
        return self._events.read(payloads)

    async def close(self) -> None:
        self._end(SourceUnavailableError("the receiver is closed"))
        self._buffer.clear()
        if self._reader is not None and self._link is not None:
            self._reader.cancel()
            await asyncio.wait((self._reader,))
            await self._link.close()  # a reader that never had its turn could not

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        # Threads of handlers ask, too, and one that reads metrics: an event that comes while they
        # look into an older one must not be taken for looked into.
        newest, (asked, answer) = self._newest, self._told
        if newest is not None and newest is not asked:
            answer = last_enqueued_in(newest) or answer
            self._told = newest, answer
        return answer

    @property
    def is_over(self) -> bool:
        """Whether it will never again read from its partition."""
        return self._error is not None

    def _keep(self, payloads: Sequence[bytes]) -> None:
        if payloads:
            self._account.add(len(payloads), sum(map(len, payloads)))
            self._buffer.extend(payloads)
            self._newest = payloads[-1]
            self._arrived.set()

    async def _read(self, link: Link) -> None:
        """Read until the link ends or the receiver is closed; then let go of the link."""
        try:
            while True:
                self._is_resting = self._account.is_too_full
                await link.look_after(is_reading=not self._is_resting)
                credit = self._account.to_grant(link.credit)
                if credit is not None:
                    await link.grant(credit)
                try:
                    async with asyncio.timeout(LISTEN_MAX_S) as self._waiting:
                        data = await (asyncio.Future() if self._is_resting else link.listen())
                except TimeoutError:
                    continue
                finally:
                    self._waiting = None
                await link.take(data)
                await asyncio.sleep(0)  # others get their turn, even if there is more to read
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

    def _ask_for_more(self) -> None:
        """Have the reader look up from the link if there is room again."""
        link, waiting, account = self._link, self._waiting, self._account
        if link is None or waiting is None or account.is_too_full:
            return
        if self._is_resting or account.to_grant(link.credit) is not None:
            self._waiting = None  # once is enough
            waiting.reschedule(0)
