"""The thread that reads all partitions of a group through one consumer.

One consumer for all: a client for each partition would mean five threads and a connection to every
broker for each (``docs/decisions/0101-one-consumer-reads-all-partitions.md``).

Rule 1: only this thread touches the consumer. What others want done waits in a queue.
Rule 2: a feed that is full is paused and no other waits for it; so memory is bounded.
Rule 3: whatever ends this thread ends every feed, with a reason.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, Protocol

from eventproc.errors import ReceiverDisplacedError, SourceError, SourceUnavailableError
from eventproc.sources.kafka.event import Message
from eventproc.sources.kafka.feed import Feed
from eventproc.sources.kafka.refusal import (
    END_OF_PARTITION,
    OUT_OF_RANGE,
    Trouble,
    error_for,
)

READ_S: Final = 0.05
"""How long one read waits: how long a wish waits while nothing comes."""

IDLE_S: Final = 1.0
"""How long to wait where there is nothing to read; a wish ends it at once."""

HOLD_S: Final = 0.2
"""How long to wait for room before all partitions are paused."""

CLOSE_MAX_S: Final = 2.0


class Consumed(Protocol):
    """What the thread needs of a consumer: ``vendor.Consumer`` has it."""

    def read(self, wait_s: float) -> Sequence[Message]:
        """Messages and errors, as soon as there are some."""

    def troubles(self) -> list[Trouble]:
        """What the client said of itself."""

    def assign(self, partition: int, offset: int) -> None:
        """Begin to read."""

    def unassign(self, partition: int) -> None:
        """Read no more."""

    def pause(self, partition: int) -> None:
        """Read no more for now."""

    def resume(self, partition: int) -> None:
        """Go on."""

    def high(self, partition: int) -> int | None:
        """The offset after the newest message, where known."""

    def close(self) -> None:
        """Disconnect."""


class Reader:
    """Reads the partitions that are opened, each into its feed."""

    def __init__(self, make_consumer: Callable[[], Consumed], name: str) -> None:
        """Start the thread, on the running loop.

        Raises:
            ConfigurationError: the client does not take a setting.
        """
        self._loop = asyncio.get_running_loop()
        self._consumer = make_consumer()
        self._feeds: dict[int, Feed] = {}
        self._paused: dict[int, Feed] = {}
        self._wishes: deque[tuple[Callable[[], None], Future[None]]] = deque()
        self._has_wish = threading.Event()
        self._is_closing = False
        self._is_holding = False
        self.is_over = False
        """Whether it will never read again."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    # On the event loop.

    async def open(self, feed: Feed) -> None:
        """Begin to fill a feed; another one of the same partition ends.

        Raises:
            SourceUnavailableError: the thread is at its end, or the client refuses.
        """
        await asyncio.wrap_future(self._wish(lambda: self._open(feed)))

    def release(self, feed: Feed) -> None:
        """Fill a feed no more, as soon as the thread comes to it."""
        self._wish(lambda: self._release(feed))

    def note_room(self, feed: Feed) -> None:
        """Something was taken: have the thread look, if it waits for that."""
        if (self._is_holding or feed.partition in self._paused) and feed.has_room:
            self._has_wish.set()

    async def close(self) -> None:
        """End the thread, and with it every feed. Never raises."""
        self._is_closing = True
        self._has_wish.set()
        await asyncio.to_thread(self._thread.join, CLOSE_MAX_S)

    def _wish(self, function: Callable[[], None]) -> Future[None]:
        done: Future[None] = Future()
        self._wishes.append((function, done))
        self._has_wish.set()
        if self.is_over:  # it may have looked for the last time before
            self._refuse_wishes()
        return done

    # On the thread.

    def _run(self) -> None:
        error: SourceError = SourceUnavailableError("the source is closed")
        try:
            while not self._is_closing:
                self._fulfil_wishes()
                self._turn()
        except SourceError as failure:
            error = failure
        except Exception as failure:  # noqa: BLE001 - a thread that dies in silence helps nobody
            error = SourceUnavailableError(f"reading from Kafka failed: {failure!r}")
        finally:
            self.is_over = True
            self._end_all(error)
            self._refuse_wishes()
            self._consumer.close()

    def _turn(self) -> None:
        """Read once, and hand out what came."""
        self._keep_bounds()
        for feed in [feed for feed in self._paused.values() if feed.has_room]:
            self._consumer.resume(feed.partition)
            del self._paused[feed.partition]
        if len(self._paused) == len(self._feeds):
            self._has_wish.wait(READ_S if self._feeds else IDLE_S)
        self._has_wish.clear()
        if self._wishes:
            return
        is_reading = len(self._paused) < len(self._feeds)
        self._hand_out(self._consumer.read(READ_S if is_reading else 0))
        for trouble in self._consumer.troubles():
            if trouble.ends_all:
                self._end_all(error_for("the Kafka client", trouble.name, trouble.text))
            if trouble.is_fatal:
                raise SourceUnavailableError(f"the Kafka client gave up: {trouble.text}")

    def _keep_bounds(self) -> None:
        """Pause the feeds that are full.

        A pause costs a fetch that is thrown away and another one. So where all are full, and nobody
        would be held up, the thread first waits a little for room.
        """
        full = [f for p, f in self._feeds.items() if p not in self._paused and f.is_full]
        if full and len(full) + len(self._paused) == len(self._feeds):
            self._wait_for_room(full)
        for feed in full:
            if feed.is_full:
                self._consumer.pause(feed.partition)
                self._paused[feed.partition] = feed

    def _wait_for_room(self, full: Sequence[Feed]) -> None:
        until_s = time.monotonic() + HOLD_S
        self._is_holding = True
        while not (self._wishes or self._is_closing or any(feed.has_room for feed in full)):
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                break
            self._has_wish.wait(left_s)
            self._has_wish.clear()
        self._is_holding = False

    def _hand_out(self, messages: Sequence[Message]) -> None:
        filled: dict[int, Feed] = {}
        for message in messages:
            feed = self._feeds.get(message.partition())  # type: ignore[arg-type]  # None: none
            if feed is None:
                continue
            filled[feed.partition] = feed
            error = message.error()
            if error is None:
                feed.put(message)
            elif error.name() == END_OF_PARTITION:
                feed.note_end()
            else:
                self._drop(feed, _meaning(feed, error.name(), error.str()))
        for partition, feed in filled.items():
            if partition not in self._feeds:
                continue
            feed.high = self._consumer.high(partition)
        self._wake(filled.values())

    def _open(self, feed: Feed) -> None:
        former = self._feeds.get(feed.partition)
        if former is not None:
            self._drop(former, ReceiverDisplacedError("a newer receiver reads this partition"))
            self._wake([former])
        self._consumer.assign(feed.partition, feed.start)
        self._feeds[feed.partition] = feed

    def _release(self, feed: Feed) -> None:
        if self._feeds.get(feed.partition) is feed:
            self._drop(feed, SourceUnavailableError("the receiver is closed"))

    def _drop(self, feed: Feed, error: SourceError) -> None:
        feed.end(error)
        if self._paused.pop(feed.partition, None) is not None:
            self._consumer.resume(feed.partition)  # the pause would outlast the assignment
        del self._feeds[feed.partition]
        self._consumer.unassign(feed.partition)

    def _end_all(self, error: SourceError) -> None:
        feeds = list(self._feeds.values())
        for feed in feeds:
            feed.end(error)
            with suppress(SourceError):
                self._drop(feed, error)
        self._wake(feeds)

    def _wake(self, feeds: Iterable[Feed]) -> None:
        """Wake whoever waits for one of these, with one message to the event loop."""
        awaited = [f for f in feeds if f.is_awaited and (f.messages or f.error is not None)]
        if awaited:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(_set_arrived, awaited)

    def _fulfil_wishes(self) -> None:
        while self._wishes:
            function, done = self._wishes.popleft()
            if not done.set_running_or_notify_cancel():
                continue
            try:
                function()
            except SourceError as error:
                done.set_exception(error)
            else:
                done.set_result(None)

    def _refuse_wishes(self) -> None:
        while self._wishes:
            with suppress(IndexError):  # both sides may come here at once
                _, done = self._wishes.popleft()
                if done.set_running_or_notify_cancel():
                    done.set_exception(SourceUnavailableError("the reader is at its end"))


def _set_arrived(feeds: Iterable[Feed]) -> None:
    for feed in feeds:
        feed.arrived.set()


def _meaning(feed: Feed, name: str, text: str) -> SourceError:
    if name in OUT_OF_RANGE:
        return SourceUnavailableError(
            f"partition {feed.partition} has nothing at the position any more; retention took it: "
            f"{text}"
        )
    return error_for(f"partition {feed.partition}", name, text)
