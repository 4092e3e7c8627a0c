"""Changes of checkpoints, as a table, as JSON and as warnings."""

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from eventproc._base.logs import printable
from eventproc._command.group.changes import Change
from eventproc._command.group.records import group_json, title_of
from eventproc._command.terminal.console import cell, plain_table
from eventproc.admin import CheckpointMoved
from eventproc.errors import EventProcError
from eventproc.models import ConsumerGroup


def changes_table(group: ConsumerGroup, changes: Sequence[Change]) -> RenderableType:
    """The changes as a table."""
    has_lags = any(change.lag_there is not None for change in changes)
    numbers = ("from", "to", "events", *(("lag here", "lag there") if has_lags else ()))
    table = plain_table("partition", *numbers, "state", "held by", numbers=numbers)
    for change in changes:
        table.add_row(
            cell(change.move.partition_id),
            _before_text(change),
            _after_text(change),
            _events_text(change.events),
            *(_lag_texts([change]) if has_lags else ()),
            change.state,
            cell(change.owner_id or ""),
        )
    totals = _lag_texts(changes) if has_lags else ()
    table.add_row("all", "", "", _total_text(changes), *totals, style="bold")
    return Group(title_of(group), table)


def _lag_texts(changes: Sequence[Change]) -> tuple[str, str]:
    here = sum(change.lag_here or 0 for change in changes)
    there = sum(change.lag_there or 0 for change in changes)
    return f"{here:,}", f"{there:,}"


def _before_text(change: Change) -> str:
    if change.before is None:
        return "none"
    return f"{_number_text(change.before)}{' (of a former hub)' if change.is_of_former_hub else ''}"


def _after_text(change: Change) -> str:
    return _number_text(change.move.sequence_number) if change.is_needed else "as it is"


def _number_text(number: int) -> str:
    return "the start" if number < 0 else f"{number:,}"


def _events_text(events: int | None) -> str:
    if events is None:  # Without a checkpoint, nothing says where the group would begin.
        return "new"
    return f"{abs(events):,} {'skipped' if events > 0 else 'again'}" if events else "0"


def _total_text(changes: Sequence[Change]) -> str:
    known = [change.events for change in changes if change.events is not None]
    sums = [sum(n for n in known if n < 0), sum(n for n in known if n > 0)]
    new = len(changes) - len(known)
    parts = [_events_text(each) for each in sums if each] + [f"{new} new"] * bool(new)
    return ", ".join(parts) or "0"


def changes_json(
    group: ConsumerGroup,
    changes: Sequence[Change],
    results: Mapping[str, CheckpointMoved | EventProcError],
) -> dict[str, object]:
    """The changes, and the results of those that were made, as JSON."""
    return {
        **group_json(group),
        "changes": [
            _change_json(change, results.get(change.move.partition_id)) for change in changes
        ],
    }


def _change_json(
    change: Change, result: CheckpointMoved | EventProcError | None
) -> dict[str, object]:
    events = change.events
    moved = result if isinstance(result, CheckpointMoved) else None
    return {
        "partition_id": change.move.partition_id,
        "from_sequence_number": change.before,
        "to_sequence_number": change.move.sequence_number,
        "to_offset": change.move.offset,
        "skipped_count": None if events is None else max(0, events),
        "repeated_count": None if events is None else max(0, -events),
        "lag_here": change.lag_here,
        "lag_there": change.lag_there,
        "state": change.state,
        "owner_id": change.owner_id,
        "is_needed": change.is_needed,
        "is_moved": moved is not None,
        "notified_owner_id": moved.notified_owner_id if moved else None,
        "error": str(result) if isinstance(result, EventProcError) else None,
    }


def warnings_for(changes: Sequence[Change]) -> list[Text]:
    """The warnings to show before the user is asked to confirm."""
    foreign = sorted({c.owner_id for c in changes if c.is_foreign and c.owner_id is not None})
    warnings = [
        Text(
            f"{printable(owner_id)} has no member record. If it is a processor of an Azure SDK, it "
            "may overwrite the new checkpoint: stop it first.",
            style="yellow",
        )
        for owner_id in foreign
    ]
    if any(change.state.startswith("kept") for change in changes):
        warnings.append(
            Text(
                "The state that is kept was made at the old position: a handler that counts lacks "
                "the events that are skipped, and has twice what is repeated. It sees the state's "
                "own position in context.state_sequence_number.",
                style="yellow",
            )
        )
    return warnings
