"""Progress of a partition in the states that tests need, and what would be stored of it."""

from datetime import UTC, datetime

from hypothesis import strategies as st

from eventproc._core.delivery.progress import PartitionProgress, ProgressSnapshot
from eventproc.models import Checkpoint, SequenceRange


def restored(
    completed=(),
    *,
    number: int | None = 0,
    has_offset: bool = True,
    has_state: bool = True,
    **fields,
) -> PartitionProgress:
    """Progress that continues from a checkpoint."""
    progress = PartitionProgress(has_state=has_state)
    progress.restore(
        Checkpoint(
            partition_id="0",
            offset=None if number is None or not has_offset else f"o{number}",
            sequence_number=number,
            completed=tuple(SequenceRange(*ends) for ends in completed),
            etag="1",
            last_modified=datetime.now(UTC),
            **fields,
        )
    )
    return progress


def snapshot(progress: PartitionProgress) -> ProgressSnapshot:
    """What would be stored now; there is something."""
    found = progress.snapshot()
    assert found is not None
    return found


def ranges(progress: PartitionProgress) -> list[tuple[int, int]]:
    """The completed ranges that would be stored now."""
    return [(found.first, found.last) for found in snapshot(progress).completed]


def stored(progress: PartitionProgress) -> tuple[int, bytes | None]:
    """The position and the state that would be stored now."""
    found = snapshot(progress)
    return found.sequence_number, found.state


@st.composite
def histories(draw):
    """Draw events with gaps, those completed before, and an order in which to complete the rest."""
    steps = draw(st.lists(st.integers(1, 3), min_size=1, max_size=40))
    found = [sum(steps[: i + 1]) for i in range(len(steps))]
    before = draw(st.sets(st.sampled_from(found)))
    order = draw(st.permutations(found))
    return found, before, order[: draw(st.integers(0, len(order)))]
