"""Keeps a link to one partition open: opens it, receives, and opens another when it has failed.

Rule: a link that fails is opened again after a back-off. The pump ends only if the source refuses
``REJECTIONS_MAX`` times in a row.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final

from eventproc._base.logs import ConditionLogger, Logger
from eventproc._delivery.links import Links
from eventproc._delivery.scope import PartitionScope
from eventproc._group.pumps.stop_scope import PartitionStoppedError, StoppedError, Waiting
from eventproc.errors import (
    OwnershipLostError,
    ReceiverDisplacedError,
    SourceError,
    SourceRejectedError,
    SourceUnavailableError,
    StoreError,
)
from eventproc.models import (
    CloseReason,
    EventPosition,
    LastEnqueued,
    PartitionProperties,
    ReceivedEvent,
)
from eventproc.ports import PartitionReceiver
from eventproc.ports._event_source import AT_ONCE, Gathering

HELD_S: Final = 5.0
"""How long a link must hold until it counts as recovered without an event."""

REJECTIONS_MAX: Final = 5
"""Refusals in a row before the pump ends. One is not enough: a role that was just assigned, or a
consumer group that was just created, may take a while to be known to the whole service."""

DISPLACED_REMEDY: Final = (
    "none if a partition was just taken over; if it repeats, another program reads this consumer "
    "group, often one with another store: give each its own"
)


class LinkFailures:
    """For how long, and why, nothing can be received from one partition."""

    def __init__(self, log: Logger) -> None:
        """Begin without a failure."""
        self._condition = ConditionLogger(log, "receiver_failed", "receiver_recovered")
        self._rejections_in_row = 0
        self._clock = asyncio.get_running_loop().time
        self._since_s: float | None = None
        self._opened_at_s: float | None = None
        self._error = ""

    @property
    def failing_s(self) -> float:
        """For how long no event could be received; 0: the link holds, as far as it is known."""
        since_s, opened_at_s, now_s = self._since_s, self._opened_at_s, self._clock()
        if since_s is None or (opened_at_s is not None and now_s - opened_at_s >= HELD_S):
            return 0.0
        return now_s - since_s

    @property
    def error(self) -> str | None:
        """Why no event can be received; ``None``: there is no reason."""
        return self._error if self.failing_s else None

    @property
    def count(self) -> int:
        """How many failures were noted since the last recovery."""
        return self._condition.count

    @property
    def is_refused(self) -> bool:
        """Whether the source refuses for good."""
        return self._rejections_in_row >= REJECTIONS_MAX

    def note(self, error: SourceError) -> None:
        """Note a failure; log it."""
        is_rejected = isinstance(error, SourceRejectedError)
        self._rejections_in_row = self._rejections_in_row + 1 if is_rejected else 0
        remedy = DISPLACED_REMEDY if isinstance(error, ReceiverDisplacedError) else None
        self._condition.note(
            is_error=is_rejected, attempt=self.count + 1, error=str(error), remedy=remedy
        )
        if not self.failing_s:
            self._since_s = self._clock()
        self._error = str(error)

    def note_opened(self) -> None:
        """Note that a link was opened."""
        self._opened_at_s = self._clock()

    def note_closed(self) -> None:
        """Note that no link is open."""
        self._opened_at_s = None

    def forget(self) -> None:
        """Count a failure that comes from now on as a new one."""
        self._since_s = None

    def end(self) -> None:
        """Note that the link works; log it if it did not."""
        self._condition.end(attempt_count=self.count)
        self._rejections_in_row = 0
        self._since_s = None


class SteadyLink:
    """The link of one pump, which is opened anew after each failure."""

    def __init__(
        self,
        links: Links,
        *,
        scope: PartitionScope,
        verify: Callable[[], Awaitable[bool]],
        wait_s: Callable[[int], float],
        takes_columns: bool = False,
        gathering: Gathering = AT_ONCE,
    ) -> None:
        """Open no link before ``open``.

        Args:
            links: Opens the links, of a log or of a queue.
            scope: Ends the waits when the pump stops; has the counters and the log.
            verify: Returns whether this processor still owns the partition.
            wait_s: Seconds to wait after the n-th failure in a row.
            takes_columns: Whether the handler takes columns; then the receivers read columns.
            gathering: How long a batch waits for more events.
        """
        self.links = links
        """The links, one after another, and how to begin and to end them."""

        self.failures = LinkFailures(scope.log)
        self._partition_id = scope.identity.partition_id
        self._stop_scope = scope.stop
        self._counters = scope.counters
        self._verify = verify
        self._wait_s = wait_s
        self._takes_columns = takes_columns
        self._gathering = links.gathering(gathering)
        self._receiving: Waiting | None = None
        self._is_restart_wanted = False
        self._last_enqueued: LastEnqueued | None = None

    @property
    def is_gathering(self) -> bool:
        """Whether events were received for a batch that is not complete."""
        receiver = self.links.receiver
        return receiver is not None and receiver.is_gathering

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        """The newest event of the partition, as last reported by the source.

        This reads it from the link each time: the service may report it between two events. While
        the link fails it is not known: there may be newer events.
        """
        self._note_last_enqueued()
        return None if self.failures.failing_s else self._last_enqueued

    async def open(self, position: EventPosition, newest: int | None) -> PartitionReceiver:
        """Open a link at a position; events up to the number *newest* were received before."""
        with self._stop_scope.waiting():
            receiver = await self.links.open(position, newest)
        self.failures.note_opened()
        if self._takes_columns:
            receiver.read_columns()
        return receiver

    async def receive(
        self, receiver: PartitionReceiver, events_max: int, wait_max: timedelta
    ) -> Sequence[ReceivedEvent]:
        """Return the next events of the open link; empty after *wait_max* or an interruption.

        Raises:
            SourceError: pass it to ``recover``.
        """
        if self.failures.count:  # A link without events is looked at as soon as it may have held.
            wait_max = min(wait_max, timedelta(seconds=HELD_S))
        try:
            with self._stop_scope.waiting() as self._receiving:
                events = await receiver.receive_batch(
                    events_max=events_max, wait_max=wait_max, gathering=self._gathering
                )
        except StoppedError:
            self._stop_scope.check()
            events = ()  # ``interrupt`` was called.
        finally:
            self._receiving = None
        is_restart_wanted, self._is_restart_wanted = self._is_restart_wanted, False
        if events:
            self.failures.end()
        elif is_restart_wanted:
            raise SourceUnavailableError("no events were received although the hub has some")
        elif self.failures.count and not self.failures.failing_s:
            self.failures.end()  # There is nothing to receive, and the link holds.
        return events

    def interrupt(self) -> None:
        """End a call of ``receive`` that is under way."""
        if self._receiving is not None:
            self._receiving.interrupt()

    def restart(self) -> None:
        """Open the link again: the hub has events, and none are received."""
        self._is_restart_wanted = True
        self.interrupt()

    async def recover(self, error: SourceError) -> None:
        """Close the link that failed, and wait before the next one.

        Raises:
            PartitionStoppedError: the source refused ``REJECTIONS_MAX`` times in a row.
            OwnershipLostError: another receiver took the link, and another processor owns the
                partition.
        """
        self._counters.receiver_error_count += 1
        self.failures.note(error)
        await self.close()
        if self.failures.is_refused:
            raise PartitionStoppedError(CloseReason.SOURCE_FAILED)
        if isinstance(error, ReceiverDisplacedError) and await self._is_lost():
            raise OwnershipLostError(self._partition_id)
        with self._stop_scope.waiting():
            await asyncio.sleep(self._wait_s(self.failures.count))

    async def _is_lost(self) -> bool:
        """Whether the ownership record names another processor, as far as the store answers."""
        try:
            with self._stop_scope.waiting():
                return not await self._verify()
        except StoreError:
            return False

    async def properties(self) -> PartitionProperties:
        """Return the partition's properties, read from the source; raises ``SourceError``."""
        with self._stop_scope.waiting():
            return await self.links.source.partition_properties(self._partition_id)

    async def properties_with_retries(self) -> PartitionProperties:
        """Return the partition's properties; retry until the source answers."""
        while True:
            try:
                properties = await self.properties()
            except SourceError as error:
                await self.recover(error)
            else:
                self.failures.end()
                return properties

    async def read_last_enqueued(self) -> None:
        """Ask for the newest event, unless an open link tells it: that of a paused queue is."""
        if self.links.receiver is not None:
            return
        try:
            end = await self.properties()
        except SourceError:
            self._last_enqueued = None
        else:
            self._last_enqueued = LastEnqueued(
                sequence_number=end.last_enqueued_sequence_number,
                offset=end.last_enqueued_offset,
                enqueued_time=end.last_enqueued_time,
            )

    async def pause(self) -> None:
        """Stop as ``stop``; a failure before the pause does not count after it."""
        if self.failures.failing_s:
            self.failures.forget()
            self._last_enqueued = None
        await self.stop()

    async def stop(self) -> None:
        """Receive no more; what was received may be settled until ``close``."""
        self._note_last_enqueued()
        await self.links.stop()

    def delivered_through(self, events: Sequence[ReceivedEvent]) -> float:
        """Return the highest number that a process may have received before.

        *events* are the first ones that were received.
        """
        return self.links.delivered_through(events, self.last_enqueued)

    async def until_settled(self) -> None:
        """Return when the service knows what was settled.

        Raises:
            PartitionStoppedError: the link is broken, so events that are done may come again.
        """
        try:
            with self._stop_scope.waiting():
                await self.links.until_settled()
        except SourceError as error:
            self.failures.note(error)
            raise PartitionStoppedError(CloseReason.SOURCE_FAILED) from error

    async def close(self) -> None:
        """Close the link, if one is open."""
        self._note_last_enqueued()
        self.failures.note_closed()
        await self.links.close()

    def _note_last_enqueued(self) -> None:
        if (receiver := self.links.receiver) is not None:
            self._last_enqueued = receiver.last_enqueued or self._last_enqueued
