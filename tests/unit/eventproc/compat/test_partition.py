"""What one partition keeps over a change of its owner."""

from types import SimpleNamespace
from typing import Any

from eventproc.compat._partition import Partition
from tests.unit.eventproc._core.events import event


def test_a_new_ownership_has_no_newest_event_before_one_is_delivered():
    """``update_checkpoint()`` without an event would store one of the former ownership."""
    owned: Any = SimpleNamespace(is_owned=True)
    checkpoints: Any = None
    partition = Partition("0", checkpoints)
    partition.begin(owned)
    newest: Any = event(7)
    partition.newest, partition.delivered = newest, 7
    partition.begin(owned)

    assert partition.store(None, {}) is None
    assert partition.delivered == -1
