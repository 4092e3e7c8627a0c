"""Receiving from one partition: opened, opened again when it breaks, closed while it is paused.

Rule: a receiver that breaks is opened again in place. Only a source that refuses for good, again
and again, ends the pump.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final

from eventproc.context import PartitionIdentity
from eventproc.ending import Ending, GivenUpError
from eventproc.errors import (
    OwnershipLostError,
    ReceiverDisplacedError,
    SourceError,
    SourceRejectedError,
    SourceUnavailableError,
    StoreError,
)
from eventproc.gate import Gate
from eventproc.logs import Logger
from eventproc.models import (
    CloseReason,
    EventPosition,
    LastEnqueued,
    Numbering,
    PartitionProperties,
    ReceivedEvent,
)
from eventproc.ports import EventSource, PartitionReceiver
from eventproc.statistics import Tally

REJECTIONS_MAX: Final = 5
"""So often in a row a source must refuse before that is believed to be for good: a right that was
just granted, or a group that was just made, may take a while to be known everywhere."""


class Reception:
    """The receiver of one partition, whatever becomes of the links below it."""

    def __init__(
        self,
        identity: PartitionIdentity,
        *,
        source: EventSource,
        ending: Ending,
        gate: Gate,
        verify: Callable[[], Awaitable[bool]],
        wait_s: Callable[[int], float],
        tally: Tally,
        log: Logger,
    ) -> None:
        self._identity = identity
        self._source = source
        self._ending = ending
        self._gate = gate
        self._verify = verify
        self._wait_s = wait_s
        self._tally = tally
        self._log = log
        self._receiver: PartitionReceiver | None = None
        self._scope: asyncio.Timeout | None = None
        self._is_restart_wanted = False
        self._has_gaps = False
        self._failures_in_row = 0
        self._rejections_in_row = 0
        self._newest_received: int | None = None
        self._last_told: LastEnqueued | None = None
        gate.on_pause = self._interrupt

    @property
    def numbering(self) -> Numbering:
        """Whose sequence numbers the source has."""
        return self._source.numbering

    @property
    def newest_received(self) -> int | None:
        """The last event that was received, or the position that receiving began after."""
        return self._newest_received

    @property
    def last_enqueued(self) -> LastEnqueued | None:
        """The newest event of the partition, as last told.

        Asked of the link itself: between two events it may learn that there are no more.
        """
        if self._receiver is not None:
            self._last_told = self._receiver.last_enqueued or self._last_told
        return self._last_told

    async def next(
        self, position: Callable[[], EventPosition], events_max: int, wait_max: timedelta
    ) -> Sequence[ReceivedEvent]:
        """Return the next events, or nothing when none came for a while or it was paused.

        Args:
            position: Where to begin, should a receiver have to be opened.
            events_max: Most events to return.
            wait_max: How long to wait for one.

        Raises:
            GivenUpError: the source refuses for good.
            OwnershipLostError: another receiver took the link, and with it the partition.
        """
        while True:
            if self._gate.is_paused:
                await self._sit_out_pause()
            try:
                receiver = self._receiver or await self._open(position())
                return await self._receive(receiver, events_max, wait_max)
            except SourceError as error:
                await self._recover(error)

    def note_position(self, sequence_number: int | None) -> None:
        """Say what was handled before anything is received, so that a gap is noticed."""
        self._newest_received = sequence_number

    def restart(self) -> None:
        """Open the receiver again: nothing comes, although there is something."""
        self._is_restart_wanted = True
        self._interrupt()

    async def properties(self) -> PartitionProperties:
        """Ask the source where the partition ends; raises ``SourceError``."""
        async with self._ending.waiting():
            return await self._source.partition_properties(self._identity.partition_id)

    async def ask_for_ever(self) -> PartitionProperties:
        """The same, as long as it takes."""
        while True:
            try:
                properties = await self.properties()
            except SourceError as error:
                await self._recover(error)
            else:
                self._note_recovery()
                return properties

    async def close(self) -> None:
        """Let go of the link, if there is one."""
        receiver, self._last_told, self._receiver = self._receiver, self.last_enqueued, None
        if receiver is not None:
            await receiver.close()

    def _interrupt(self) -> None:
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    async def _sit_out_pause(self) -> None:
        # A link that nobody reads from would fill up, and be dropped by the service after a while.
        await self.close()
        self._log.info("partition_paused")
        async with self._ending.waiting():
            await self._gate.until_open()
        self._log.info("partition_resumed")

    async def _open(self, position: EventPosition) -> PartitionReceiver:
        async with self._ending.waiting():
            self._receiver = await self._source.open_receiver(
                self._identity.group.name, self._identity.partition_id, position
            )
        return self._receiver

    async def _receive(
        self, receiver: PartitionReceiver, events_max: int, wait_max: timedelta
    ) -> Sequence[ReceivedEvent]:
        scope = asyncio.timeout(None)
        try:
            async with self._ending.waiting(), scope:
                self._scope = scope
                events = await receiver.receive(events_max=events_max, wait_max=wait_max)
        except TimeoutError:
            if not scope.expired():
                raise
            events = ()
        finally:
            self._scope = None
        if self._is_restart_wanted and not events:
            self._is_restart_wanted = False
            raise SourceUnavailableError("nothing was received although there is something")
        if events:
            self._note_recovery()
            first = receiver.first_sequence_number
            self._note_gap(events[0].sequence_number if first is None else first)
            self._newest_received = events[-1].sequence_number
            self._tally.received_count += len(events)
        return events

    async def _recover(self, error: SourceError) -> None:
        self._failures_in_row += 1
        self._tally.receiver_error_count += 1
        is_rejected = isinstance(error, SourceRejectedError)
        self._rejections_in_row = self._rejections_in_row + 1 if is_rejected else 0
        log = self._log.error if is_rejected else self._log.warning
        log = log if self._failures_in_row == 1 else self._log.debug
        log("receiver_failed", attempt=self._failures_in_row, error=str(error))
        await self.close()
        if self._rejections_in_row >= REJECTIONS_MAX:
            raise GivenUpError(CloseReason.SOURCE_FAILED)
        await self._settle_displacement(error)
        async with self._ending.waiting():
            await asyncio.sleep(self._wait_s(self._failures_in_row))

    def _note_recovery(self) -> None:
        if self._failures_in_row:
            self._log.info("receiver_recovered", attempt_count=self._failures_in_row)
        self._failures_in_row = self._rejections_in_row = 0

    def _note_gap(self, first: int) -> None:
        """Tell of what lies between the last that was received and the *first* that is there."""
        newest = self._newest_received
        # Before the first event (-1) everything may be missing: retention takes it in the end.
        if newest is not None and 0 <= newest < first - 1:
            # Where a hub is compacted every batch has gaps; that is worth one warning.
            log = self._log.debug if self._has_gaps else self._log.warning
            self._has_gaps = True
            log(
                "events_missing",
                after_sequence_number=newest,
                missing_count=first - newest - 1,
            )

    async def _settle_displacement(self, error: SourceError) -> None:
        """Another receiver took the link: only the record tells whether we still own it."""
        if not isinstance(error, ReceiverDisplacedError):
            return
        try:
            async with self._ending.waiting():
                is_owned = await self._verify()
        except StoreError:
            return
        if not is_owned:
            raise OwnershipLostError(self._identity.partition_id)
