"""Which rows of a view are shown, and in which order. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from eventproc.cli.group.view import GroupView, PartitionRow
from eventproc.resources.names import name_of


class RowOrder(StrEnum):
    """What partitions or resources are sorted by."""

    PARTITION = "partition"
    LAG = "lag"
    OWNER = "owner"
    CHECKPOINT = "checkpoint"


def _by_lag(row: PartitionRow) -> tuple[bool, int]:
    return row.checkpoint_error is None, -(row.lag or 0)


def _by_owner(row: PartitionRow) -> tuple[bool, str]:
    return row.owner_id is not None, row.owner_id or ""


def _by_checkpoint(row: PartitionRow) -> timedelta:
    return -(row.checkpoint_age or timedelta(0))


_KEYS: Final[Mapping[RowOrder, Callable[[PartitionRow], Any]]] = {
    RowOrder.LAG: _by_lag,
    RowOrder.OWNER: _by_owner,
    RowOrder.CHECKPOINT: _by_checkpoint,
}


def select(view: GroupView, order: RowOrder, text: str) -> GroupView:
    """Return the view with only the partitions that a text selects, sorted.

    Args:
        view: The view; its partitions are ordered by their ids.
        order: *lag* and *checkpoint* begin with the largest, and *lag* with damaged checkpoints;
            *owner* begins with partitions that have none. Equal ones stay ordered by their ids,
            or by the names of resources.
        text: A partition is selected if its id is this text, or if its owner's id or a
            resource's name contains it, in upper or lower case. Everything is, if it is empty.
    """
    rows = [row for row in view.partitions if not text or _is_selected(view, row, text.lower())]
    if view.group.is_of_resources:
        rows.sort(key=lambda row: name_of(row.partition_id))
    if order in _KEYS:
        rows.sort(key=_KEYS[order])
    return replace(view, partitions=tuple(rows))


def _is_selected(view: GroupView, row: PartitionRow, text: str) -> bool:
    if view.group.is_of_resources:
        is_named = text in name_of(row.partition_id).lower()
    else:
        is_named = text == row.partition_id.lower()
    return is_named or text in (row.owner_id or "unowned").lower()
