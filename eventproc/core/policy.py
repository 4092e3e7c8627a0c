"""When to write a checkpoint, and how long to wait before the next attempt."""

from datetime import timedelta


def is_checkpoint_due(
    *,
    handled_count: int,
    oldest_age_s: float,
    every_events: int | None,
    every: timedelta | None,
) -> bool:
    """Whether progress that is not yet written has to be: enough of it, or old enough."""
    if handled_count == 0:
        return False
    by_count = every_events is not None and handled_count >= every_events
    return by_count or (every is not None and oldest_age_s >= every.total_seconds())


def backoff_s(attempt: int, *, first: timedelta, most: timedelta, chance: float = 1.0) -> float:
    """Seconds to wait after the ``attempt``-th failure (from 1): doubled each time, capped.

    ``chance`` (0 to 1) spreads the wait between half of it and all of it, so that a fleet that
    failed together does not come back together.
    """
    doublings = min(attempt - 1, 62)
    whole_s = min(first.total_seconds() * 2.0**doublings, most.total_seconds())
    return whole_s * (0.5 + 0.5 * chance)
