"""The thread that reads all partitions of a consumer group through one consumer.

A client for each partition would need five threads and a connection to every broker for each.

Rule 1: only this thread uses the consumer. Other threads put requests into a queue.
Rule 2: a feed that is full is paused, and other feeds do not wait for it; so memory is bounded.
Rule 3: when this thread ends, every feed ends with an error.
Rule 4: a client that hears nothing from any broker is given up. If it asks when no broker is
registered, as after a freeze of the only one, it may forget them all and never ask again.
"""

import asyncio
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import timedelta
from itertools import groupby
from typing import Final

from eventproc.errors import (
    PositionLostError,
    ReceiverDisplacedError,
    SourceError,
    SourceUnavailableError,
)
from eventproc.sources.kafka._client import READ_MAX, Consumer
from eventproc.sources.kafka._errors import END_OF_PARTITION, OUT_OF_RANGE, error_for
from eventproc.sources.kafka._event import Error, Message
from eventproc.sources.kafka._feed import Feed

READS_MAX: Final = 16
"""Most reads before receivers are woken. A batch of columns needs fewer, if messages are there, so
that its receiver is not woken twice."""

READ_S: Final = 0.05
"""Longest time of one read without messages, and so the longest time that a request waits."""

IDLE_S: Final = 1.0
"""Longest wait if there is nothing to read; a request ends it at once."""

HOLD_S: Final = 0.2
"""How long to wait for room before all partitions are paused."""

CLOSE_MAX_S: Final = 2.0
"""Longest time that ``close`` waits for the thread."""

CHECK_S: Final = 0.3
"""Longest time of one attempt to get an answer from a broker."""

_TRUNCATED: Final = re.compile(r"log truncation detected .* broker end offset is \d+ ")
"""The client's words, for which it has no error of its own. An end offset of -1 means only that the
broker does not remember the leader of that time."""


class Reader:
    """Reads the partitions that are opened, each into its feed."""

    def __init__(self, consumer: Consumer, name: str, patience: timedelta) -> None:
        """Start the thread, on the running loop.

        After a silence of twice the *patience* it asks for the topic. If there is no answer for
        *patience*, it ends.
        """
        self._loop = asyncio.get_running_loop()
        self._consumer = consumer
        self._patience_s = patience.total_seconds()
        self._heard_s = time.monotonic()
        """When it last heard from a broker, or had nothing to read."""

        self._asked_s: float | None = None
        """When it asked for the topic first, of the attempts without an answer until now."""

        self._feeds: dict[int, Feed] = {}
        self._paused: dict[int, Feed] = {}
        self._requests: deque[tuple[Callable[[], None], Future[None]]] = deque()
        self._has_request = threading.Event()
        self._is_closing = False
        self._is_holding = False
        self.is_over = False
        """Whether the thread has ended."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    # On the event loop.

    async def open(self, feed: Feed) -> None:
        """Start to fill a feed; another feed of the same partition ends.

        Raises:
            SourceUnavailableError: the thread has ended, or the client refuses.
        """
        await asyncio.wrap_future(self._submit(lambda: self._open(feed)))

    def release(self, feed: Feed) -> None:
        """Request that the thread stops filling a feed. Does not wait for it."""
        self._submit(lambda: self._release(feed))

    def note_room(self, feed: Feed) -> None:
        """Wake the thread after messages were taken, if it waits for room in this feed."""
        if (self._is_holding or feed.partition in self._paused) and feed.has_room:
            self._has_request.set()

    async def close(self) -> None:
        """End the thread and every feed. Never raises."""
        self._is_closing = True
        self._has_request.set()
        await asyncio.to_thread(self._thread.join, CLOSE_MAX_S)

    def _submit(self, function: Callable[[], None]) -> Future[None]:
        done: Future[None] = Future()
        self._requests.append((function, done))
        self._has_request.set()
        if self.is_over:  # the thread may have ended before it saw the request
            self._refuse_requests()
        return done

    # On the thread.

    def _run(self) -> None:
        error: SourceError = SourceUnavailableError("the source is closed")
        try:
            while not self._is_closing:
                self._run_requests()
                self._read_once()
        except SourceError as failure:
            error = failure
        except Exception as failure:  # noqa: BLE001 - it ends the feeds, which report it
            error = SourceUnavailableError(f"reading from Kafka failed: {failure!r}")
        finally:
            self.is_over = True
            self._end_all(error)
            self._refuse_requests()
            self._consumer.close()

    def _read_once(self) -> None:
        """Read once, and put the messages into their feeds."""
        self._keep_bounds()
        for feed in [feed for feed in self._paused.values() if feed.has_room]:
            self._consumer.resume(feed.partition)
            del self._paused[feed.partition]
        if len(self._paused) == len(self._feeds):
            self._has_request.wait(READ_S if self._feeds else IDLE_S)
        self._has_request.clear()
        if self._requests:
            return
        is_reading = len(self._paused) < len(self._feeds)
        filled = self._fill(READ_S if is_reading else 0)
        for feed in filled.values():
            if self._feeds.get(feed.partition) is feed:
                feed.high = self._consumer.high(feed.partition)
        self._wake(filled.values())
        if filled or not is_reading:
            self._note_heard()
        else:
            self._check_silence()
        for client_error in self._consumer.client_errors():
            if client_error.ends_all:
                # Only a new client looks at where the log of a former leader ended.
                raise error_for("the Kafka client", client_error.name, client_error.text)

    def _note_heard(self) -> None:
        self._heard_s, self._asked_s = time.monotonic(), None

    def _check_silence(self) -> None:
        """Ask for the topic after a long silence.

        Raises:
            SourceUnavailableError: there was no answer for too long.
        """
        now_s = time.monotonic()
        if now_s - self._heard_s < 2 * self._patience_s:
            return
        try:
            self._consumer.partition_count(CHECK_S)
        except SourceUnavailableError as error:
            # Not since it last heard something: this process may have been suspended.
            self._asked_s = self._asked_s or now_s
            if now_s - self._asked_s >= self._patience_s:
                raise SourceUnavailableError(
                    f"the Kafka client has heard nothing for {now_s - self._heard_s:.0f} s, and "
                    f"gets no answer: {error}. The partitions will be opened with a new client"
                ) from error
        else:
            self._note_heard()

    def _keep_bounds(self) -> None:
        """Pause the feeds that are full.

        A pause discards messages that were fetched, and they are fetched again. So if all feeds are
        full, which delays no other feed, the thread first waits up to ``HOLD_S`` for room.
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
        while not (self._requests or self._is_closing or any(feed.has_room for feed in full)):
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                break
            self._has_request.wait(left_s)
            self._has_request.clear()
        self._is_holding = False

    def _fill(self, wait_s: float) -> Mapping[int, Feed]:
        """Read as often as messages are there, within bounds; return the feeds that got some.

        They are woken later, all at once: that takes longer than reading some messages.
        """
        filled: dict[int, Feed] = {}
        for _ in range(READS_MAX):
            # No name keeps the messages until the next read: those of two start the collector.
            count = self._distribute(self._consumer.read(wait_s), filled)
            if count < READ_MAX or any(feed.is_full for feed in filled.values()):
                break
            wait_s = 0
        return filled

    def _distribute(self, messages: Sequence[Message], filled: dict[int, Feed]) -> int:
        """Put messages into their feeds; return how many they were."""
        for partition, error, run in _runs(messages):
            feed = self._feeds.get(partition)
            if feed is None:
                continue
            filled[partition] = feed
            if error is None:
                feed.put(run)
            elif error.name() == END_OF_PARTITION:
                feed.note_end()
            else:
                self._drop(feed, _error_for(feed, error.name(), error.str()))
        return len(messages)

    def _open(self, feed: Feed) -> None:
        former = self._feeds.get(feed.partition)
        if former is not None:
            self._drop(former, ReceiverDisplacedError("a newer receiver reads this partition"))
            self._wake([former])
        self._consumer.assign(feed.partition, feed.start, feed.leader_epoch)
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
        """End every feed, without a call to the client: it may block while no broker answers."""
        feeds = list(self._feeds.values())
        self._feeds.clear()
        for feed in feeds:
            feed.end(error)
        self._wake(feeds)

    def _wake(self, feeds: Iterable[Feed]) -> None:
        """Wake the receivers that wait for these feeds, with one callback on the event loop."""
        awaited = [f for f in feeds if f.is_awaited and (f.count or f.error is not None)]
        if awaited:
            with suppress(RuntimeError):  # the loop is closed: no receiver waits any more
                self._loop.call_soon_threadsafe(_set_arrived, awaited)

    def _run_requests(self) -> None:
        while self._requests:
            function, done = self._requests.popleft()
            if not done.set_running_or_notify_cancel():
                continue
            try:
                function()
            except SourceError as error:
                done.set_exception(error)
            except BaseException as error:  # the thread ends, so the caller must not wait
                done.set_exception(SourceUnavailableError(f"the reader failed: {error!r}"))
                raise
            else:
                done.set_result(None)

    def _refuse_requests(self) -> None:
        while self._requests:
            with suppress(IndexError):  # both threads may run this at once
                _, done = self._requests.popleft()
                if done.set_running_or_notify_cancel():
                    done.set_exception(SourceUnavailableError("the reader has ended"))


def _runs(
    messages: Sequence[Message],
) -> Iterator[tuple[int, Error | None, Sequence[Message]]]:
    """Return runs of messages of one partition, and of errors in place of them, in order.

    Most often there is one.
    """
    if not messages:
        return
    first = messages[0].partition()
    if not [m for m in messages if m.error() is not None or m.partition() != first]:
        yield first, None, messages
        return
    partitions = [message.partition() for message in messages]
    errors = [message.error() for message in messages]
    keys: Sequence[object] = partitions
    if any(errors):
        # By name: the client's errors cannot be compared with ``None``.
        names = [error and error.name() for error in errors]
        keys = list(zip(partitions, names, strict=True))
    begin = 0
    for _, run in groupby(keys):
        end = begin + len(list(run))
        yield partitions[begin], errors[begin], messages[begin:end]
        begin = end


def _set_arrived(feeds: Iterable[Feed]) -> None:
    for feed in feeds:
        feed.arrived.set()


def _error_for(feed: Feed, name: str, text: str) -> SourceError:
    if name in OUT_OF_RANGE and _TRUNCATED.search(text):
        return PositionLostError(
            f"partition {feed.partition} has lost events that were received, as a cluster may when "
            f"a partition changes its leader: {text}"
        )
    if name in OUT_OF_RANGE:
        return SourceUnavailableError(
            f"partition {feed.partition} has no event at the position: retention deleted it, or "
            f"the log ends before it: {text}"
        )
    return error_for(f"partition {feed.partition}", name, text)
