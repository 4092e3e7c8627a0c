"""How much of a partition's progress its checkpoint covers, when the rest is due, and its write."""

from dataclasses import dataclass, field
from datetime import timedelta
from math import inf

from eventproc._core.delivery.checkpoints import former_hubs_writer, is_behind
from eventproc._core.delivery.progress import PartitionProgress, ProgressSnapshot
from eventproc.models import Checkpoint, CheckpointUpdate


@dataclass(slots=True, kw_only=True)
class UncommittedEvents:
    """The handled events that no checkpoint covers: a count, and the checkpoint policy's limits."""

    max_events: int | None
    interval: timedelta | None
    max_uncommitted_events: int | None
    count: int = 0
    _oldest_at_s: float = 0.0
    _limit: float = field(init=False)
    """At how many events a checkpoint is due, whatever their age."""

    def __post_init__(self) -> None:
        """Compute the limit: for each event it is compared once."""
        is_manual = self.max_events is None and self.interval is None
        limits = (self.max_events, None if is_manual else self.max_uncommitted_events)
        self._limit = min((limit for limit in limits if limit is not None), default=inf)

    def add(self, count: int, now_s: float) -> bool:
        """Count events that were handled now; return whether a checkpoint may be due earlier.

        That is so for the first of them, and when a limit is reached: others change nothing.
        """
        is_first = not self.count
        if is_first:
            self._oldest_at_s = now_s
        self.count += count
        return is_first or self.count >= self._limit

    def remove(self, count: int, now_s: float) -> None:
        """Count events that a checkpoint covers; those that are left count as handled now."""
        self.count -= count
        self._oldest_at_s = now_s

    def age_s(self, now_s: float) -> float:
        """Return the age in seconds of the oldest of them; 0 if there is none."""
        return now_s - self._oldest_at_s if self.count else 0.0

    def due_in_s(self, now_s: float) -> float | None:
        """Return in how many seconds to write a checkpoint; ``None``: not before there are more.

        It is due when there are ``max_events``, when the oldest is ``interval`` old, or when there
        is no room.
        """
        if self.count == 0:
            return None
        if self.count >= self._limit:
            return 0.0
        if self.interval is None:
            return None
        return max(0.0, self.interval.total_seconds() - self.age_s(now_s))

    @property
    def has_room(self) -> bool:
        """Whether more events may be handled: fewer than ``max_uncommitted_events`` are counted.

        Always true without automatic checkpoints: no write would end the wait.
        """
        is_manual = self.max_events is None and self.interval is None
        limit = None if is_manual else self.max_uncommitted_events
        return limit is None or self.count < limit


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingProgress:
    """Progress that a write is to store."""

    snapshot: ProgressSnapshot
    handled_count: int
    """How many of the uncommitted events it covers."""


class Coverage:
    """The progress of one partition beside its stored checkpoint."""

    def __init__(
        self,
        progress: PartitionProgress,
        uncommitted: UncommittedEvents,
        *,
        partition_id: str,
        writer: str,
    ) -> None:
        """Begin without a checkpoint; *writer* is named by every write."""
        self.uncommitted = uncommitted
        """The events that ``note`` counted and no checkpoint covers."""

        self.checkpoint: Checkpoint | None = None
        """The checkpoint as it was last confirmed."""

        self.writer = writer
        self._progress = progress
        self._partition_id = partition_id
        self._noted_revision = self._stored_revision = progress.revision
        """The revisions of the progress that ``note`` counted last, and that is stored."""

    def note(self, handled_count: int, now_s: float) -> bool:
        """Count events towards the next write; return whether it may be due earlier than before.

        This counts nothing if there is no progress since the last call, or none that can be stored.
        """
        progress = self._progress
        if progress.revision <= self._noted_revision or not progress.has_position:
            return False
        self._noted_revision = progress.revision
        return self.uncommitted.add(handled_count, now_s)

    def covers(self, revision: int) -> bool:
        """Whether the progress of this revision is stored."""
        return self._stored_revision >= revision

    def newest(self) -> PendingProgress | None:
        """Return the progress to store now; ``None``: there is none that is not stored."""
        snapshot = self._progress.snapshot()
        if snapshot is None or snapshot.revision == self._stored_revision:
            return None
        return self.pending(snapshot)

    def pending(self, snapshot: ProgressSnapshot) -> PendingProgress:
        """Return this progress, which covers all uncommitted events."""
        return PendingProgress(snapshot=snapshot, handled_count=self.uncommitted.count)

    def is_ahead_of(self, pending: PendingProgress) -> bool:
        """Whether the stored position is further on."""
        return is_behind(pending.snapshot.sequence_number, self.checkpoint)

    def update_of(self, pending: PendingProgress) -> CheckpointUpdate:
        """Return the write that stores this progress in place of the stored checkpoint."""
        snapshot = pending.snapshot
        return CheckpointUpdate(
            partition_id=self._partition_id,
            offset=snapshot.offset,
            sequence_number=snapshot.sequence_number,
            state=snapshot.state,
            completed=snapshot.completed,
            isolation=snapshot.isolation,
            replaces=self.checkpoint,
            writer=self.writer,
        )

    def confirm(
        self, pending: PendingProgress, checkpoint: Checkpoint | None, now_s: float
    ) -> None:
        """Note that this checkpoint is stored, and covers the progress."""
        revision = pending.snapshot.revision
        self.checkpoint = checkpoint
        self._stored_revision = revision
        self._noted_revision = max(revision, self._noted_revision)
        self.uncommitted.remove(pending.handled_count, now_s)

    def mark_former_hub(self) -> None:
        """Have a mark stored that the position is one of a hub that was deleted."""
        self.writer = former_hubs_writer(self.writer)
        self._progress.touch()
