"""Count moves and hand-overs of partitions in the processors' logs.

These are the ordinary logs of a processor; ``docs/log-events.md`` lists their events.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

_READY: Final = "processor_started"
_STARTED: Final = "partition_started"
_HAND_OVERS: Final = frozenset({"partition_handed_over", "partition_released"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """One line of a processor's log."""

    at: datetime
    event: str
    fields: Mapping[str, object]


def read_logs(paths: Iterable[Path]) -> list[LogEvent]:
    """Read logs, and sort their lines by time.

    An incomplete line, at the end of a killed process's log, is left out.
    """
    found = []
    for path in paths:
        for line in path.read_text("utf-8", "replace").splitlines():
            try:
                fields = json.loads(line)
                at = datetime.fromisoformat(fields["time"])
            except (ValueError, KeyError, TypeError):
                continue
            found.append(LogEvent(at=at, event=fields["event"], fields=fields))
    return sorted(found, key=lambda event: event.at)


def first_start(events: Iterable[LogEvent]) -> datetime | None:
    """Return when the first of these processors had started, or ``None``."""
    return next((event.at for event in events if event.event == _READY), None)


def serving(events: Iterable[LogEvent]) -> dict[str, str]:
    """Return which processor was the last to start each partition."""
    return {
        str(event.fields["partition_id"]): str(event.fields["owner_id"])
        for event in events
        if event.event == _STARTED
    }


def count_moves(events: Iterable[LogEvent], begins: Iterable[datetime]) -> list[int]:
    """Count how often a partition changed its owner, in each of the spans that begin at ``begins``.

    A partition that its last owner starts again has not moved.
    """
    starts = list(begins)
    counts = [0] * len(starts)
    owner_by_partition: dict[object, object] = {}
    for event in events:
        if event.event != _STARTED:
            continue
        partition_id, owner_id = event.fields["partition_id"], event.fields["owner_id"]
        if owner_by_partition.get(partition_id) == owner_id:
            continue
        owner_by_partition[partition_id] = owner_id
        span = sum(event.at >= start for start in starts) - 1
        if span >= 0:
            counts[span] += 1
    return counts


def count_hand_overs(events: Iterable[LogEvent], before: datetime) -> int:
    """Count the partitions that an owner handed over to another processor."""
    return sum(
        event.event in _HAND_OVERS
        and event.at < before
        and event.fields.get("outcome") == "won"
        and event.fields.get("to_owner_id") is not None
        for event in events
    )
