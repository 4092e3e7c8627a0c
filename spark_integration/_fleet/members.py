"""The driver's record of each member of a fleet. Thread-safe."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from spark_integration._fleet.statistics import FleetMember, FleetStatistics, Phase, Report

SILENCE_MAX_S: Final = 10.0
"""A member without a report for this long does not count as live. Reports come twice a second."""

WARNINGS_KEPT: Final = 50


@dataclass(slots=True)
class _Slot:
    report: Report | None = None
    reported_at_s: float = 0.0
    is_placed: bool = False
    """Whether a task of the current job has reported."""

    has_served: bool = False
    was_cut_short: bool = False
    """Whether a member of this slot died while it and the fleet were stopping."""

    was_given_up: bool = False
    """Whether the fleet's stop cancelled the job of a member that had fallen silent."""

    replaced: set[str] = field(default_factory=set)
    """Incarnations that a newer one has replaced."""

    handled_before: int = 0
    """Events that the replaced incarnations handled."""

    error: str | None = None


class MemberRegistry:
    """The newest report of every member; from it the driver computes phases and statistics."""

    def __init__(self, name: str, size: int, *, clock: Callable[[], float]) -> None:
        self._name = name
        self._slots = [_Slot() for _ in range(size)]
        self._clock = clock
        self._warnings: deque[str] = deque(maxlen=WARNINGS_KEPT)
        self._changed = threading.Condition()
        self._is_stopping = False

    def owner_id(self, slot: int) -> str:
        """Return the owner id of a slot's processor."""
        return f"{self._name}-{slot}"

    def begin(self, slot: int) -> None:
        """Record that a job was submitted for a slot."""
        with self._changed:
            self._slots[slot].is_placed = False

    def note(self, report: Report) -> bool:
        """Record a report; return ``False`` if another incarnation has replaced its sender.

        Spark may declare an executor lost and start a replacement while the executor still runs.
        """
        with self._changed:
            slot = self._slots[report.slot]
            if report.incarnation in slot.replaced:
                return False
            if slot.report is not None and slot.report.incarnation != report.incarnation:
                slot.handled_before += _handled(slot.report)
                slot.was_cut_short |= self._is_stopping and slot.report.phase is Phase.STOPPING
                slot.replaced.add(slot.report.incarnation)
            elif slot.report is not None and slot.report.phase is Phase.ENDED:
                return False  # The last report came through Spark and overtook this one.
            slot.report = report
            slot.reported_at_s = self._clock()
            slot.is_placed = True
            slot.has_served |= report.phase is Phase.SERVING
            lines = list(report.warnings)
            if report.error is not None and report.phase is Phase.ENDED:
                slot.error = report.error
                lines.append(report.error)
            self._warnings.extend(f"{self.owner_id(report.slot)}: {line}" for line in lines)
            self._changed.notify_all()
            return True

    def note_failure(self, slot: int, error: str) -> None:
        """Record that a slot's job failed without a last report."""
        with self._changed:
            self._slots[slot].error = error
            self._slots[slot].is_placed = False
            self._warnings.append(f"{self.owner_id(slot)}: {error}")
            self._changed.notify_all()

    def has_served(self, slot: int) -> bool:
        """Whether a slot's processor has ever reached the phase ``SERVING``."""
        with self._changed:
            return self._slots[slot].has_served

    def unplaced(self) -> list[int]:
        """Slots whose job waits for a core, or has not reported yet."""
        return self._where(lambda slot: not slot.is_placed)

    def silent_slots(self) -> list[int]:
        """Slots without a task, and those without a report for ``SILENCE_MAX_S``."""
        now_s = self._clock()
        return self._where(
            lambda slot: not slot.is_placed or now_s - slot.reported_at_s > SILENCE_MAX_S
        )

    def give_up(self, slot: int) -> None:
        """Record that a stop cancels a silent slot's job; its member, if any, cannot stop."""
        with self._changed:
            self._slots[slot].was_given_up |= self._slots[slot].is_placed

    def begin_stop(self) -> None:
        """Record that members are asked to stop, and wake ``wait_until_all_serve``."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()

    def cut_short(self) -> list[int]:
        """Slots whose member died before it had stopped: it had begun to, or was given up."""
        return self._where(
            lambda slot: (
                slot.was_cut_short
                or (slot.report is not None and slot.report.phase is Phase.STOPPING)
                or (
                    slot.was_given_up
                    and slot.report is not None
                    and slot.report.phase is not Phase.ENDED
                )
            )
        )

    def _where(self, holds: Callable[[_Slot], bool]) -> list[int]:
        with self._changed:
            return [number for number, slot in enumerate(self._slots) if holds(slot)]

    def wait_until_all_serve(self, timeout_s: float, is_over: Callable[[], bool]) -> bool:
        """Wait until every slot has served, or ``is_over()``; return ``False`` on a time-out."""
        with self._changed:
            return self._changed.wait_for(
                lambda: is_over() or all(slot.has_served for slot in self._slots), timeout_s
            )

    def statistics(self) -> FleetStatistics:
        """The fleet's statistics as of now."""
        with self._changed:
            return FleetStatistics(
                name=self._name,
                members=tuple(map(self._member, range(len(self._slots)))),
                handled_count=sum(
                    slot.handled_before + _handled(slot.report) for slot in self._slots
                ),
                warnings=tuple(self._warnings),
            )

    def _member(self, number: int) -> FleetMember:
        slot = self._slots[number]
        report = slot.report
        silent_s = (
            None if report is None else self._clock() - slot.reported_at_s + report.age_seconds
        )
        phase = report.phase if report is not None and slot.is_placed else Phase.WAITING
        return FleetMember(
            slot=number,
            owner_id=self.owner_id(number),
            phase=phase,
            host=None if report is None else report.host,
            process_id=None if report is None else report.process_id,
            restart_count=len(slot.replaced),
            silent_seconds=silent_s,
            statistics=None if report is None else report.statistics,
            error=slot.error,
            is_live=phase is Phase.SERVING and silent_s is not None and silent_s < SILENCE_MAX_S,
        )


def _handled(report: Report | None) -> int:
    if report is None or report.statistics is None:
        return 0
    return report.statistics.counters.handled_count
