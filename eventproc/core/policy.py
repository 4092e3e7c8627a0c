"""When to write a checkpoint, and how long to wait before the next attempt."""

from datetime import timedelta


def checkpoint_due_in_s(
    *,
    handled_count: int,
    oldest_age_s: float,
    max_events: int | None,
    interval: timedelta | None,
    max_uncommitted_events: int | None,
) -> float | None:
    """Seconds until uncommitted progress must be written; ``None``: not before more is handled.

    A write is due when there are *max_events* uncommitted events, when the oldest is *interval*
    old, or when handling would have to wait because of *max_uncommitted_events*.
    """
    if handled_count == 0:
        return None
    if max_events is not None and handled_count >= max_events:
        return 0.0
    if not has_room(handled_count, max_events, interval, max_uncommitted_events):
        return 0.0
    return None if interval is None else max(0.0, interval.total_seconds() - oldest_age_s)


def has_room(
    handled_count: int,
    max_events: int | None,
    interval: timedelta | None,
    max_uncommitted_events: int | None,
) -> bool:
    """Whether more events may be handled while *handled_count* are uncommitted.

    Always true if only the handler asks for checkpoints: waiting would then never end.
    """
    is_manual = max_events is None and interval is None
    return max_uncommitted_events is None or is_manual or handled_count < max_uncommitted_events


def backoff_s(
    attempt: int, *, initial: timedelta, maximum: timedelta, chance: float = 1.0
) -> float:
    """Seconds to wait after the ``attempt``-th failure (from 1): doubled each time, capped.

    ``chance`` (0 to 1) spreads the wait between half of it and all of it, so that processors that
    failed at the same time do not retry at the same time.
    """
    doublings = min(attempt - 1, 62)
    whole_s = min(initial.total_seconds() * 2.0**doublings, maximum.total_seconds())
    return whole_s * (0.5 + 0.5 * chance)
