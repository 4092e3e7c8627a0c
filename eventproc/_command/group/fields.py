"""A view of a group for programs: as JSON, and its partitions or resources as CSV.

The names, units and order of the fields are stable: ``docs/command.md`` lists them.
"""

from dataclasses import asdict
from typing import Final

from eventproc._command.group.records import group_json
from eventproc._command.group.view import GroupView
from eventproc._command.terminal.console import Fields, csv_lines, rows_of
from eventproc._core.watching.group import WatchedMember, WatchedPartition

PARTITION_FIELDS: Final[Fields[WatchedPartition]] = {
    "partition_id": lambda row: row.partition_id,
    "owner_id": lambda row: row.owner_id,
    "is_expired": lambda row: row.is_expired,
    "record_age_s": lambda row: _rounded(row.renewed_ago_s),
    "sequence_number": lambda row: row.position,
    "checkpoint_age_s": lambda row: _rounded(row.written_ago_s),
    "checkpoint_error": lambda row: row.error,
    "lag": lambda row: row.lag,
    "paused_since": lambda row: None if row.pause is None else row.pause.since.isoformat(),
    "pause_reason": lambda row: None if row.pause is None else row.pause.reason,
}
RESOURCE_FIELDS: Final[Fields[WatchedPartition]] = {
    "name": lambda row: row.name,
    "owner_id": lambda row: row.owner_id,
    "epoch": lambda row: row.epoch,
    "is_expired": lambda row: row.is_expired,
    "record_age_s": lambda row: _rounded(row.renewed_ago_s),
}


def as_json(view: GroupView) -> dict[str, object]:
    """The view as JSON; ages are in seconds."""
    return {
        **group_json(view.group),
        "as_of": view.as_of.isoformat(),
        "placement": view.placement,
        **({} if view.published is None else {"published_plan": asdict(view.published)}),
        **(
            {"resources": rows_of(RESOURCE_FIELDS, view.partitions)}
            if view.group.is_of_resources
            else {"lag": view.lag, "partitions": rows_of(PARTITION_FIELDS, view.partitions)}
        ),
        "members": [_member_json(member) for member in view.members],
        "other_groups": [
            {
                **group_json(each),
                "is_running": None if view.live_others is None else each in view.live_others,
            }
            for each in view.others
        ],
        "lost_members": [
            {"owner_id": member.owner_id, "silent_s": _rounded(member.silent_s)}
            for member in view.dead
        ],
        "findings": [
            {
                "kind": finding.kind,
                "text": finding.text,
                "remedy": finding.remedy,
                "partition_ids": finding.partition_ids,
                "member_ids": finding.member_ids,
            }
            for finding in view.findings
        ],
    }


def _member_json(member: WatchedMember) -> dict[str, object]:
    record = member.record
    return {
        "owner_id": member.owner_id,
        "partition_count": member.partition_count,
        "has_member_record": member.has_record,
        "status": record.status.value,
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
    fields = RESOURCE_FIELDS if view.group.is_of_resources else PARTITION_FIELDS
    as_of = view.as_of.isoformat()
    rows = ({"as_of": as_of, **row} for row in rows_of(fields, view.partitions))
    return csv_lines(rows, ("as_of", *fields), header=header)
