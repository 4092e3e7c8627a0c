"""What the driver knows of each slot of a fleet. Used by several threads."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from spark_integration.fleet_status import FleetMember, FleetStatistics, Phase, Report

SILENCE_MAX_S: Final = 10.0
"""Reports come twice a second; who was silent for this long is not counted as live."""

WARNINGS_KEPT: Final = 50


@dataclass(slots=True)
class _Slot:
    report: Report | None = None
    heard_at_s: float = 0.0
    is_placed: bool = False
    """Whether a task of the job that runs now has reported."""

    has_served: bool = False
    was_cut_short: bool = False
    """Whether one died while it stopped, and the fleet with it."""

    gone: set[str] = field(default_factory=set)
    """Incarnations that another one has followed."""

    handled_before: int = 0
    """By incarnations that are gone."""

    error: str | None = None


class FleetBoard:
    """Every member's newest report."""

    def __init__(self, name: str, size: int, *, clock: Callable[[], float]) -> None:
        self._name = name
        self._slots = [_Slot() for _ in range(size)]
        self._clock = clock
        self._warnings: deque[str] = deque(maxlen=WARNINGS_KEPT)
        self._changed = threading.Condition()
        self._is_stopping = False

    def owner_id(self, slot: int) -> str:
        """Return the name of a slot's processor in its group."""
        return f"{self._name}-{slot}"

    def begin(self, slot: int) -> None:
        """Note that a job was submitted for a slot."""
        with self._changed:
            self._slots[slot].is_placed = False

    def note(self, report: Report) -> bool:
        """Take a report in; return whether its sender still has its slot.

        Spark may take an executor for lost, and start a replacement, while it lives on.
        """
        with self._changed:
            slot = self._slots[report.slot]
            if report.incarnation in slot.gone:
                return False
            if slot.report is not None and slot.report.incarnation != report.incarnation:
                slot.handled_before += _handled(slot.report)
                slot.was_cut_short |= self._is_stopping and slot.report.phase is Phase.STOPPING
                slot.gone.add(slot.report.incarnation)
            elif slot.report is not None and slot.report.phase is Phase.ENDED:
                return False  # On its way by the desk it was overtaken by the last one, by Spark.
            slot.report = report
            slot.heard_at_s = self._clock()
            slot.is_placed = True
            slot.has_served |= report.phase is Phase.SERVING
            told = list(report.warnings)
            if report.error is not None and report.phase is Phase.ENDED:
                slot.error = report.error
                told.append(report.error)
            self._warnings.extend(f"{self.owner_id(report.slot)}: {line}" for line in told)
            self._changed.notify_all()
            return True

    def note_failure(self, slot: int, error: str) -> None:
        """Note that a slot's task failed without a last word."""
        with self._changed:
            self._slots[slot].error = error
            self._slots[slot].is_placed = False
            self._warnings.append(f"{self.owner_id(slot)}: {error}")
            self._changed.notify_all()

    def has_served(self, slot: int) -> bool:
        """Whether a slot's processor has ever got as far as serving."""
        with self._changed:
            return self._slots[slot].has_served

    def unplaced(self) -> list[int]:
        """Slots whose job waits for a core."""
        with self._changed:
            return [number for number, slot in enumerate(self._slots) if not slot.is_placed]

    def unheard(self) -> list[int]:
        """Slots where there is nobody to end: those not placed, and those of whom nothing comes."""
        with self._changed:
            now_s = self._clock()
            return [
                number
                for number, slot in enumerate(self._slots)
                if not slot.is_placed or now_s - slot.heard_at_s > SILENCE_MAX_S
            ]

    def begin_stop(self) -> None:
        """Note that members are told to stop; let those who wait look again."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()

    def cut_short(self) -> list[int]:
        """Slots whose member heard that it is to stop, and died before it had."""
        with self._changed:
            return [
                number
                for number, slot in enumerate(self._slots)
                if slot.was_cut_short
                or (slot.report is not None and slot.report.phase is Phase.STOPPING)
            ]

    def wait_until_all_serve(self, timeout_s: float, is_over: Callable[[], bool]) -> bool:
        """Wait until every slot has served, or ``is_over``; return whether one of them is so."""
        with self._changed:
            return self._changed.wait_for(
                lambda: is_over() or all(slot.has_served for slot in self._slots), timeout_s
            )

    def statistics(self) -> FleetStatistics:
        """How the fleet does, now."""
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
        silent_s = None if report is None else self._clock() - slot.heard_at_s + report.age_seconds
        phase = report.phase if report is not None and slot.is_placed else Phase.WAITING
        return FleetMember(
            slot=number,
            owner_id=self.owner_id(number),
            phase=phase,
            host=None if report is None else report.host,
            process_id=None if report is None else report.process_id,
            restart_count=len(slot.gone),
            silent_seconds=silent_s,
            statistics=None if report is None else report.statistics,
            error=slot.error,
            is_live=phase is Phase.SERVING and silent_s is not None and silent_s < SILENCE_MAX_S,
        )


def _handled(report: Report | None) -> int:
    if report is None or report.statistics is None:
        return 0
    return report.statistics.tally.handled_count
