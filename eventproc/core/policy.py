"""When to write a checkpoint, and how long to wait before the next attempt."""

from datetime import timedelta


def checkpoint_due_in_s(
    *,
    handled_count: int,
    oldest_age_s: float,
    every_events: int | None,
    every: timedelta | None,
    unwritten_events_max: int | None,
) -> float | None:
    """Seconds until progress that is not yet written has to be: enough of it, or old enough.

    ``None``: not before more is handled. Where handling would have to wait for the store, it is
    enough, too.
    """
    if handled_count == 0:
        return None
    if every_events is not None and handled_count >= every_events:
        return 0.0
    if not has_room(handled_count, every_events, every, unwritten_events_max):
        return 0.0
    return None if every is None else max(0.0, every.total_seconds() - oldest_age_s)


def has_room(
    handled_count: int,
    every_events: int | None,
    every: timedelta | None,
    unwritten_events_max: int | None,
) -> bool:
    """Whether more may be handled, although so much of it is not yet written.

    Always where only the handler asks for writes: nobody else could make room.
    """
    is_manual = every_events is None and every is None
    return unwritten_events_max is None or is_manual or handled_count < unwritten_events_max


def backoff_s(attempt: int, *, first: timedelta, most: timedelta, chance: float = 1.0) -> float:
    """Seconds to wait after the ``attempt``-th failure (from 1): doubled each time, capped.

    ``chance`` (0 to 1) spreads the wait between half of it and all of it, so that a fleet that
    failed together does not come back together.
    """
    doublings = min(attempt - 1, 62)
    whole_s = min(first.total_seconds() * 2.0**doublings, most.total_seconds())
    return whole_s * (0.5 + 0.5 * chance)
