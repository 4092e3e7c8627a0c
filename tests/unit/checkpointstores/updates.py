"""Updates of a checkpoint, for tests of every store."""

from typing import Any

from eventproc.models import Checkpoint, CheckpointUpdate


def update_of(
    number: int, replaces: Checkpoint | None = None, state: bytes | None = None, **changes: Any
) -> CheckpointUpdate:
    """Return an update of partition 0."""
    values: dict[str, Any] = {
        "partition_id": "0",
        "offset": str(number),
        "sequence_number": number,
        "replaces": replaces,
        "state": state,
        "writer": "pump-a",
    }
    return CheckpointUpdate(**(values | changes))
