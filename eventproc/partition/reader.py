"""Receives events from one partition: opens and reopens the receiver, closes it during a pause.

Rule: a receiver that fails is opened again after a back-off. The pump ends only if the source
refuses ``REJECTIONS_MAX`` times in a row.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from eventproc.core.checkpoints import is_beyond_end, precedes_hub
from eventproc.errors import (
    OwnershipLostError,
    ReceiverDisplacedError,
    SourceError,
    SourceRejectedError,
    SourceUnavailableError,
    StoreError,
)
from eventproc.logs import ConditionLogger
from eventproc.models import (
    CloseReason,
    EventPosition,
    LastEnqueued,
    OffsetFormat,
    PartitionProperties,
    ReceivedEvent,
)
from eventproc.partition.flow_control import PauseSwitch
from eventproc.partition.links import Links
from eventproc.partition.scope import PartitionScope
from eventproc.ports import PartitionReceiver
from eventproc.ports.event_source import AT_ONCE, Gathering
from eventproc.pumps.stop_scope import PartitionStoppedError

PAUSED_READ_INTERVAL_S: Final = 10.0
"""Seconds between two readings of the number of the newest event, while a partition is paused."""

HELD_S: Final = 5.0
"""How long a link must hold until its receiver counts as recovered without an event."""

REJECTIONS_MAX: Final = 5
"""Refusals in a row before the pump ends. One is not enough: a role that was just assigned, or a
consumer group that was just created, may take a while to be known to the whole service."""


class FormerHubError(Exception):
    """The hub was deleted and created again since the checkpoint was adopted.

    Never leaves the pump.
    """


class PartitionReader:
    """Receives from one partition, and opens a new link when the former one has failed."""

    def __init__(
        self,
        links: Links,
        *,
        scope: PartitionScope,
        pause_switch: PauseSwitch,
        verify: Callable[[], Awaitable[bool]],
        wait_s: Callable[[int], float],
        takes_columns: bool = False,
        gathering: Gathering = AT_ONCE,
    ) -> None:
        """Create the reader; it opens no receiver before ``next``.

        Args:
            links: Opens the receivers.
            scope: Ends the waits when the pump stops; has the counters and the log.
            pause_switch: Says whether the partition is paused; the receiver is closed then.
            verify: Returns whether this processor still owns the partition.
            wait_s: Seconds to wait after the n-th failure in a row.
            takes_columns: Whether the handler takes columns; then the receivers read columns.
            gathering: How long a batch waits for more events.
        """
        self.links = links
        """The links, one after another, and how to begin and to end them."""

        self._source = links.source
        self._takes_columns = takes_columns
        self._gathering = links.gathering(gathering)
        self._identity = scope.identity
        self._stop_scope = scope.stop
        self._counters = scope.counters
        self._log = scope.log
        self._activity = scope.activity
        self._pause_switch = pause_switch
        self._verify = verify
        self._wait_s = wait_s
        self._receiving: asyncio.Timeout | None = None
        self._is_restart_wanted = False
        self._has_gaps = False
        self._failure = ConditionLogger(self._log, "receiver_failed", "receiver_recovered")
        self._rejections_in_row = 0
        self._clock = asyncio.get_running_loop().time
        self._failing_since_s: float | None = None
        self._opened_at_s = 0.0
        self._error = ""
        self.newest_received: int | None = None
        """Sequence number of the last event received; at first, of the position to begin after. If
        the next event's number is not the next one, events are missing."""

        self.known_since: datetime | None = None
        """When the pump adopted its checkpoint, by the store's clock; ``None`` without one."""

        self._last_enqueued_known: LastEnqueued | None = None
        pause_switch.on_pause = self._interrupt

    @property
    def offset_format(self) -> OffsetFormat:
        """The format of the source's offsets."""
        return self._source.offset_format

    @property
    def is_gathering(self) -> bool:
        """Whether events were received for a batch that is not complete."""
        receiver = self.links.receiver
        return receiver is not None and receiver.is_gathering

    @property
    def hub_created_at(self) -> datetime | None:
        """When the hub was created, as the source last read it; ``None`` if it does not say."""
        return self._source.created_at

    @property
    def failing_s(self) -> float:
        """For how long no event could be received; 0: the link holds, as far as it is known."""
        since_s, receiver, now_s = self._failing_since_s, self.links.receiver, self._clock()
        if since_s is None or (receiver is not None and now_s - self._opened_at_s >= HELD_S):
            return 0.0
        return now_s - since_s

    @property
    def error(self) -> str | None:
        """Why no event can be received; ``None``: there is no reason."""
        return self._error if self.failing_s else None

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        """The newest event of the partition, as last reported by the source.

        This reads it from the link each time: the service may report it between two events. While
        the receiver fails it is not known: there may be newer events.
        """
        self._note_last_enqueued()
        return None if self.failing_s else self._last_enqueued_known

    async def next(
        self, position: Callable[[], EventPosition], events_max: int, wait_max: timedelta
    ) -> Sequence[ReceivedEvent]:
        """Return the next events; empty after *wait_max* or less without one, or in a pause.

        Args:
            position: Returns where to begin; called if a receiver has to be opened.
            events_max: The most events to return.
            wait_max: How long to wait for the first event.

        Raises:
            PartitionStoppedError: the source refused ``REJECTIONS_MAX`` times in a row.
            OwnershipLostError: another receiver took the link, and another processor owns the
                partition.
            FormerHubError: the position is of a hub that was deleted.
        """
        while True:
            if self._pause_switch.is_paused:
                await self._wait_while_paused()
            self._refuse_former_hub(position)
            try:
                receiver = self.links.receiver or await self._open(position())
                # After a failure, a link without events is looked at as soon as it may have held.
                within = (
                    min(wait_max, timedelta(seconds=HELD_S)) if self._failure.count else wait_max
                )
                return await self._receive(receiver, events_max, within)
            except SourceError as error:
                if isinstance(error, SourceRejectedError) and await self._is_beyond_end(position()):
                    raise FormerHubError from error
                await self._recover(error)

    def _refuse_former_hub(self, position: Callable[[], EventPosition]) -> None:
        """Raise ``FormerHubError`` if the hub is newer than the position."""
        created_at = self.hub_created_at
        if created_at is None or self.known_since is None or created_at <= self.known_since:
            return
        number = position().sequence_number
        if number is not None and precedes_hub(number, self.known_since, created_at):
            raise FormerHubError
        # The position before the first event is valid in any hub. The clocks of store and hub
        # differ, so its checkpoint may seem to be older than its own hub.
        self.known_since = created_at

    async def _is_beyond_end(self, position: EventPosition) -> bool:
        """Whether the hub refused a position above its newest event."""
        if self.known_since is None or not self.links.can_be_refused:
            return False
        try:
            return is_beyond_end(position.sequence_number, await self.properties())
        except SourceError:
            return False

    def restart(self) -> None:
        """Open the receiver again: the hub has events, and none are received."""
        self._is_restart_wanted = True
        self._interrupt()

    async def properties(self) -> PartitionProperties:
        """Return the partition's properties, read from the source; raises ``SourceError``."""
        async with self._stop_scope.waiting():
            return await self._source.partition_properties(self._identity.partition_id)

    async def properties_with_retries(self) -> PartitionProperties:
        """Return the partition's properties; retry until the source answers."""
        while True:
            try:
                properties = await self.properties()
            except SourceError as error:
                await self._recover(error)
            else:
                self._note_recovery()
                return properties

    async def stop(self) -> None:
        """Receive no more; what was received may be settled until ``close``."""
        self._note_last_enqueued()
        await self.links.stop()

    async def until_settled(self) -> None:
        """Return when the service knows what was settled.

        Raises:
            PartitionStoppedError: the link is broken, so events that are done may come again.
        """
        try:
            async with self._stop_scope.waiting():
                await self.links.until_settled()
        except SourceError as error:
            self._failure.note(is_error=False, attempt=1, error=str(error))
            raise PartitionStoppedError(CloseReason.SOURCE_FAILED) from error

    async def close(self) -> None:
        """Close the link, if one is open."""
        self._note_last_enqueued()
        await self.links.close()

    def _note_last_enqueued(self) -> None:
        if (receiver := self.links.receiver) is not None:
            self._last_enqueued_known = receiver.last_enqueued or self._last_enqueued_known

    def _interrupt(self) -> None:
        if self._receiving is not None and not self._receiving.expired():
            self._receiving.reschedule(asyncio.get_running_loop().time())

    async def _wait_while_paused(self) -> None:
        if self.failing_s:
            self._failing_since_s = self._last_enqueued_known = None
        # The buffer of a link that is not read would fill up, and the service would close it.
        await self.stop()
        self._log.info("partition_paused")
        while self._pause_switch.is_paused:
            async with self._stop_scope.waiting():
                await self._pause_switch.until_open(within_s=PAUSED_READ_INTERVAL_S)
            if self._pause_switch.is_paused:
                await self._read_newest()
        await self.close()
        self._log.info("partition_resumed")

    async def _read_newest(self) -> None:
        """Read the number of the newest event: in a pause no event comes, but the lag grows."""
        if self.links.receiver is not None:
            return  # That of a queue stays open, and the service tells it.
        try:
            end = await self.properties()
        except SourceError:
            self._last_enqueued_known = None
        else:
            self._last_enqueued_known = LastEnqueued(
                sequence_number=end.last_enqueued_sequence_number,
                offset=end.last_enqueued_offset,
                enqueued_time=end.last_enqueued_time,
            )

    async def _open(self, position: EventPosition) -> PartitionReceiver:
        async with self._stop_scope.waiting():
            receiver = await self.links.open(position, self.newest_received)
        self._opened_at_s = self._clock()
        if self._takes_columns:
            receiver.read_columns()
        return receiver

    async def _receive(
        self, receiver: PartitionReceiver, events_max: int, wait_max: timedelta
    ) -> Sequence[ReceivedEvent]:
        timeout = asyncio.timeout(None)
        try:
            async with self._stop_scope.waiting(), timeout:
                self._receiving = timeout
                events = await receiver.receive_batch(
                    events_max=events_max, wait_max=wait_max, gathering=self._gathering
                )
        except TimeoutError:
            if not timeout.expired():
                raise
            events = ()
        finally:
            self._receiving = None
        is_restart_wanted, self._is_restart_wanted = self._is_restart_wanted, False
        if is_restart_wanted and not events:
            raise SourceUnavailableError("no events were received although the hub has some")
        if events:
            self._note_recovery()
            first = receiver.first_sequence_number
            if first is None:
                await self._note_gap(events[0].sequence_number)
            else:
                await self._note_gap(first, is_deleted=True)
            newest = events[-1].sequence_number
            if self.newest_received is None or newest > self.newest_received:
                self._activity.progressed_at_s = self._clock()
            self.newest_received = newest
            self._counters.received_count += len(events)
        elif self._failure.count and not self.failing_s:
            self._note_recovery()  # There is nothing to receive, and the link holds.
        return events

    async def _recover(self, error: SourceError) -> None:
        self._counters.receiver_error_count += 1
        is_rejected = isinstance(error, SourceRejectedError)
        self._rejections_in_row = self._rejections_in_row + 1 if is_rejected else 0
        attempt = self._failure.count + 1
        self._failure.note(is_error=is_rejected, attempt=attempt, error=str(error))
        if not self.failing_s:
            self._failing_since_s = self._clock()
        self._error = str(error)
        await self.close()
        if self._rejections_in_row >= REJECTIONS_MAX:
            raise PartitionStoppedError(CloseReason.SOURCE_FAILED)
        await self._check_displacement(error)
        async with self._stop_scope.waiting():
            await asyncio.sleep(self._wait_s(attempt))

    def _note_recovery(self) -> None:
        self._failure.end(attempt_count=self._failure.count)
        self._rejections_in_row = 0
        self._failing_since_s = None

    async def _note_gap(self, first: int, *, is_deleted: bool = False) -> None:
        """Log events that are missing between the last received one and *first*.

        If the link does not say that they were deleted, the partition is asked once.
        """
        newest = self.newest_received
        # Position -1 is before the first event: retention may have removed any number of them.
        if newest is not None and 0 <= newest < first - 1:
            # In a compacted hub every batch has gaps: warn once only.
            is_first, self._has_gaps = not self._has_gaps, True
            is_loss = is_first and (is_deleted or await self._begins_after(newest + 1))
            log = self._log.warning if is_loss else self._log.debug
            log(
                "events_missing",
                after_sequence_number=newest,
                missing_count=first - newest - 1,
            )

    async def _begins_after(self, number: int) -> bool:
        """Whether the partition begins after a number, as far as is known.

        Otherwise the event was not deleted by retention: the hub is compacted.
        """
        try:
            end = await self.properties()
        except SourceError:
            return True
        return end.is_empty or end.beginning_sequence_number > number

    async def _check_displacement(self, error: SourceError) -> None:
        """If another receiver took the link, check the ownership record; raise if it is lost."""
        if not isinstance(error, ReceiverDisplacedError):
            return
        try:
            async with self._stop_scope.waiting():
                is_owned = await self._verify()
        except StoreError:
            return
        if not is_owned:
            raise OwnershipLostError(self._identity.partition_id)
