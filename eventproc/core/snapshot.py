"""What a checkpoint is to store of a partition's progress, as of one moment."""

from dataclasses import dataclass

from eventproc.models import Checkpoint, CheckpointUpdate, Isolation, SequenceRange


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressSnapshot:
    """What the next checkpoint stores."""

    sequence_number: int
    offset: str
    state: bytes | None
    """``None`` leaves the stored state alone."""

    completed: tuple[SequenceRange, ...]
    """Ranges done above ``sequence_number``: sorted, disjoint, ``COMPLETED_RANGES_MAX`` at most.
    """

    isolation: Isolation
    """The isolation stored with the position; see ``core.deliveries``."""

    revision: int
    """The ``revision`` of the progress at that moment."""

    def update(
        self, partition_id: str, replaces: Checkpoint | None, writer: str
    ) -> CheckpointUpdate:
        """Return the write that stores it in place of the stored checkpoint."""
        return CheckpointUpdate(
            partition_id=partition_id,
            offset=self.offset,
            sequence_number=self.sequence_number,
            state=self.state,
            completed=self.completed,
            isolation=self.isolation,
            replaces=replaces,
            writer=writer,
        )
