"""Is a processor healthy? Why not?

Rule 1: it is *live* if its threads run. What other systems do makes no difference: a restart would
not bring them back, and a restart of all processors makes an outage worse.
Rule 2: it is *ready* if it is a member of its group and serves what it owns. A paused processor and
one on standby are ready, too: both are intended. One that owns nothing must reach its store.
Rule 3: each partition is judged by itself, by its progress.

The functions return the reasons why it is not; without any, it is. A reason is a sentence for an
operator, and contains no secret.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from eventproc.models._statistics import (
    GroupStatistics,
    Phase,
    ProcessorStatistics,
    PumpStatistics,
    ResourceProcessorStatistics,
    ResourceStatistics,
)

CALLS_PART: Final = 0.9
"""A call that has lasted for this part of a stall is its cause."""

RECEIVER_PATIENCE_S: Final = 10.0
"""Links break now and then; a receiver that fails for longer leaves its partition unserved."""

STOPPED: Final = (
    "the failure policy stopped it: restart, skip the event (eventproc checkpoints reset), or "
    "processor.resume"
)
UNTRUSTED: Final = "the store has not confirmed its lease in time"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartHealth:
    """The health of one partition or resource."""

    name: str
    reasons: Sequence[str] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    """Figures for programs, by name; durations in seconds."""


def readiness(
    phase: Phase, statistics: GroupStatistics, display_name: Callable[[str], str], awaited: str = ""
) -> Sequence[str]:
    """Return why the processor is not ready.

    Args:
        phase: What it is doing.
        statistics: The current ones.
        display_name: Returns the user's name of what it owns.
        awaited: What it waits for while it starts, if it waits.
    """
    if phase is not Phase.SERVING:
        is_waiting = phase is Phase.STARTING and awaited
        return [f"{phase.value}: it waits for {awaited}" if is_waiting else phase.value]
    if statistics.store_error is not None and not statistics.owned:
        return [f"it owns nothing, and the store fails: {statistics.store_error}"]
    what = "resource" if isinstance(statistics, ResourceProcessorStatistics) else "partition"
    unserved = _unserved(statistics, display_name)
    return [f"{what} {name} is not served: {reason}" for name, reason in unserved.items()]


def parts(statistics: GroupStatistics, display_name: Callable[[str], str]) -> Sequence[PartHealth]:
    """Return the health of each partition or resource that is owned, in the order of names."""
    healths: dict[str, PartHealth] = {}
    if isinstance(statistics, ProcessorStatistics):
        healths = {pump.partition_id: _partition(pump) for pump in statistics.pumps}
    elif isinstance(statistics, ResourceProcessorStatistics):
        healths = {each.name: _resource(each) for each in statistics.resources}
    for name, reason in _unserved(statistics, display_name).items():
        known = healths.get(name, PartHealth(name=name))
        reasons = [f"not served: {reason}", *known.reasons]
        healths[name] = PartHealth(name=name, reasons=reasons, facts=known.facts)
    return [healths[name] for name in sorted(healths, key=_order)]


def _order(name: str) -> tuple[int, str]:
    """Sort numbers by their value, and before other names."""
    return (len(name) if name.isdecimal() else sys.maxsize, name)


def _unserved(statistics: GroupStatistics, display_name: Callable[[str], str]) -> dict[str, str]:
    """Return what is owned and not served, and why; without what is being handed over."""
    error = statistics.store_error
    untrusted = UNTRUSTED if error is None else f"{UNTRUSTED}: {error}"
    obstacles: dict[str, str | None] = {
        display_name(each): "it failed, and is tried again after a wait"
        for each in statistics.restarting
    }
    if isinstance(statistics, ProcessorStatistics):
        obstacles |= dict.fromkeys(statistics.stopped, STOPPED)
        obstacles |= {
            p.partition_id: next(_obstacles(p, untrusted), None) for p in statistics.pumps
        }
    elif isinstance(statistics, ResourceProcessorStatistics):
        obstacles |= {r.name: None if r.is_trusted else untrusted for r in statistics.resources}
    owned = set(statistics.owned) - set(statistics.handing_over)
    found = {name: obstacles.get(name, "it was just claimed") for name in map(display_name, owned)}
    return {name: found[name] or "" for name in sorted(found, key=_order) if found[name]}


def _obstacles(pump: PumpStatistics, untrusted: str) -> Iterator[str]:
    if not pump.is_trusted:
        yield untrusted
    if pump.receiver_failing_seconds >= RECEIVER_PATIENCE_S:
        yield f"no events for {pump.receiver_failing_seconds:.0f} s: {pump.receiver_error}"
    if not pump.is_served:
        yield pump.checkpoint_error or "its handler has not started"


def _partition(pump: PumpStatistics) -> PartHealth:
    return PartHealth(
        name=pump.partition_id,
        reasons=[*_reasons(pump)],
        facts={
            "progress_age_s": round(pump.progress_age_seconds, 3),
            "call_s": None if pump.call_seconds is None else round(pump.call_seconds, 3),
            "lag": pump.lag,
            "lag_s": pump.lag_seconds,
            "receiver_failing_s": round(pump.receiver_failing_seconds, 3),
            "checkpoint_age_s": round(pump.checkpoint_age_seconds, 3),
            "sequence_number": pump.sequence_number,
            "is_paused": pump.is_paused,
            "paused_since": None if pump.paused_since is None else pump.paused_since.isoformat(),
            "pause_reason": pump.pause_reason,
            "is_stalled": pump.is_stalled,
            "stalled_sequence_number": pump.stalled_sequence_number,
            "handler_error": pump.handler_error,
        },
    )


def _reasons(pump: PumpStatistics) -> Iterator[str]:
    if pump.is_stalled:
        age_s, call_s = pump.progress_age_seconds, pump.call_seconds
        if call_s is not None and call_s > CALLS_PART * age_s:
            number = pump.stalled_sequence_number
            where = "" if number is None else f", at event {number}"
            yield f"a call of the handler has completed nothing for {call_s:.0f} s{where}"
        elif pump.handler_error is not None:
            yield pump.handler_error
        elif pump.receiver_failing_seconds < RECEIVER_PATIENCE_S:
            yield f"there are events, and none was completed for {age_s:.0f} s"
    if pump.is_served and pump.checkpoint_error is not None:
        yield f"its checkpoint cannot be stored: {pump.checkpoint_error}"


def _resource(resource: ResourceStatistics) -> PartHealth:
    failing_s = resource.failing_seconds
    return PartHealth(
        name=resource.name,
        reasons=[] if resource.error is None else [f"hold has failed for {failing_s:.0f} s"],
        facts={"epoch": resource.epoch, "failing_s": round(failing_s, 3)},
    )
