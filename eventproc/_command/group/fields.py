"""A view of a group for programs: as JSON, and its partitions or resources as CSV.

The names, units and order of the fields are stable: ``docs/command.md`` lists them.
"""

from dataclasses import asdict
from typing import Final

from eventproc._command.group.records import group_json
from eventproc._command.group.view import GroupView
from eventproc._command.terminal.console import csv_lines
from eventproc._core.watching.group import WatchedMember, WatchedPartition

PARTITION_FIELDS: Final = (
    "partition_id",
    "owner_id",
    "is_expired",
    "record_age_s",
    "sequence_number",
    "checkpoint_age_s",
    "checkpoint_error",
    "lag",
    "paused_since",
    "pause_reason",
)
RESOURCE_FIELDS: Final = ("name", "owner_id", "epoch", "is_expired", "record_age_s")


def as_json(view: GroupView) -> dict[str, object]:
    """The view as JSON; ages are in seconds."""
    return {
        **group_json(view.group),
        "as_of": view.as_of.isoformat(),
        "placement": view.placement,
        **({} if view.schema is None else {"schema": asdict(view.schema)}),
        **(
            {"resources": [_resource_json(row) for row in view.partitions]}
            if view.group.is_of_resources
            else {
                "lag": view.lag,
                "partitions": [_partition_json(row) for row in view.partitions],
            }
        ),
        "members": [_member_json(member) for member in view.members],
    }


def _partition_json(row: WatchedPartition) -> dict[str, object]:
    return {
        "partition_id": row.partition_id,
        "owner_id": row.owner_id,
        "is_expired": row.is_expired,
        "record_age_s": _rounded(row.renewed_ago_s),
        "sequence_number": row.position,
        "checkpoint_age_s": _rounded(row.written_ago_s),
        "checkpoint_error": row.error,
        "lag": row.lag,
        "paused_since": None if row.pause is None else row.pause.since.isoformat(),
        "pause_reason": None if row.pause is None else row.pause.reason,
    }


def _resource_json(row: WatchedPartition) -> dict[str, object]:
    return {
        "name": row.name,
        "owner_id": row.owner_id,
        "epoch": row.epoch,
        "is_expired": row.is_expired,
        "record_age_s": _rounded(row.renewed_ago_s),
    }


def _member_json(member: WatchedMember) -> dict[str, object]:
    record = member.record
    return {
        "owner_id": member.owner_id,
        "partition_count": member.partition_count,
        "has_member_record": member.has_record,
        "is_leaving": record.is_leaving,
        "hands_over": record.hands_over,
        "placement": record.placement if member.has_record else None,
        "weight": record.weight,
        "capacity": record.capacity,
        "ordinal": record.ordinal,
        "version": record.version,
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def csv_rows(view: GroupView, *, header: bool = True) -> str:
    """The partitions or resources as CSV: a line for each, with the time of the view.

    Args:
        view: The view.
        header: Whether the first line has the names of the columns.
    """
    row_json = _resource_json if view.group.is_of_resources else _partition_json
    fields = ("as_of", *(RESOURCE_FIELDS if view.group.is_of_resources else PARTITION_FIELDS))
    rows = ({"as_of": view.as_of.isoformat(), **row_json(row)} for row in view.partitions)
    return csv_lines(rows, fields, header=header)
