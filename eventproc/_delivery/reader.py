"""Receives events from one partition: closes the link in a pause, and notices what is missing."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from eventproc._core.delivery.checkpoints import is_beyond_end, precedes_hub
from eventproc._delivery.flow_control import PauseSwitch
from eventproc._delivery.scope import PartitionScope
from eventproc._delivery.steady_link import SteadyLink
from eventproc.errors import PositionLostError, SourceError, SourceRejectedError
from eventproc.models import EventPosition, ReceivedEvent

PAUSED_READ_INTERVAL_S: Final = 10.0
"""Seconds between two readings of the number of the newest event, while a partition is paused."""


class FormerHubError(Exception):
    """The hub was deleted and created again since the checkpoint was adopted.

    Never leaves the pump.
    """


class PartitionReader:
    """Receives from one partition after a position."""

    def __init__(
        self, link: SteadyLink, *, scope: PartitionScope, pause_switch: PauseSwitch
    ) -> None:
        """Create the reader; it opens no link before ``next``.

        Args:
            link: Is kept open while the partition is not paused.
            scope: Ends the waits when the pump stops; has the counters and the log.
            pause_switch: Says whether the partition is paused.
        """
        self.link = link
        self._stop_scope = scope.stop
        self._counters = scope.counters
        self._log = scope.log
        self._progress = scope.progress
        self._pause_switch = pause_switch
        self._has_gaps = False
        self.newest_received: int | None = None
        """Sequence number of the last event received; at first, of the position to begin after. If
        the next event's number is not the next one, events are missing."""

        self._known_since: datetime | None = None

    def begin(self, newest_received: int | None, known_since: datetime | None) -> None:
        """Note after which event reading begins.

        Args:
            newest_received: Its sequence number, if it is known.
            known_since: When the pump adopted its checkpoint, by the store's clock; ``None``
                without one.
        """
        self.newest_received = newest_received
        self._known_since = known_since

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
            FormerHubError: the position is of a hub that was deleted, or of events that are gone.
        """
        while True:
            if self._pause_switch.is_paused:
                await self._wait_while_paused()
            self._refuse_former_hub(position)
            try:
                receiver = self.link.links.receiver or await self.link.open(
                    position(), self.newest_received
                )
                events = await self.link.receive(receiver, events_max, wait_max)
            except SourceError as error:
                if await self._is_of_former_hub(error, position()):
                    raise FormerHubError from error
                await self.link.recover(error)
                continue
            if events:
                await self._note(events, receiver.first_sequence_number)
            return events

    def _refuse_former_hub(self, position: Callable[[], EventPosition]) -> None:
        """Raise ``FormerHubError`` if the hub is newer than the position."""
        created_at = self.link.links.source.created_at
        if created_at is None or self._known_since is None or created_at <= self._known_since:
            return
        number = position().sequence_number
        if number is not None and precedes_hub(number, self._known_since, created_at):
            raise FormerHubError
        # The position before the first event is valid in any hub. The clocks of store and hub
        # differ, so its checkpoint may seem to be older than its own hub.
        self._known_since = created_at

    async def _is_of_former_hub(self, error: SourceError, position: EventPosition) -> bool:
        """Whether an error means that the events before the position are of a former hub."""
        if isinstance(error, PositionLostError):
            return position.sequence_number is not None
        return isinstance(error, SourceRejectedError) and await self._is_beyond_end(position)

    async def _is_beyond_end(self, position: EventPosition) -> bool:
        """Whether the hub refused a position above its newest event."""
        if self._known_since is None or not self.link.links.can_be_refused:
            return False
        try:
            return is_beyond_end(position.sequence_number, await self.link.properties())
        except SourceError:
            return False

    async def _wait_while_paused(self) -> None:
        # The buffer of a link that is not read would fill up, and the service would close it.
        await self.link.pause()
        self._log.info("partition_paused")
        while self._pause_switch.is_paused:
            with self._stop_scope.waiting():
                await self._pause_switch.until_open(within_s=PAUSED_READ_INTERVAL_S)
            if self._pause_switch.is_paused:  # No event comes, but the lag grows.
                await self.link.read_last_enqueued()
        await self.link.close()
        self._log.info("partition_resumed")

    async def _note(self, events: Sequence[ReceivedEvent], lowest: int | None) -> None:
        """Note events; *lowest* is the lowest number that the link can deliver, if it says."""
        if lowest is None:
            await self._note_gap(events[0].sequence_number)
        else:
            await self._note_gap(lowest, is_deleted=True)
        newest = events[-1].sequence_number
        if self.newest_received is None or newest > self.newest_received:
            self._progress.at_s = asyncio.get_running_loop().time()
        self.newest_received = newest
        self._counters.received_count += len(events)

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
            end = await self.link.properties()
        except SourceError:
            return True
        return end.is_empty or end.beginning_sequence_number > number

    async def has_more(self) -> bool:
        """Whether the hub has events that were not received.

        ``False`` if the hub does not answer: for how long the link fails is judged as well.
        """
        newest = self.newest_received
        if newest is None:
            return False
        try:
            end = await self.link.properties()
        except SourceError:
            return False
        return not end.is_empty and end.last_enqueued_sequence_number > newest
