"""Measures the load of each partition that this processor serves, for its member record.

Rule 1: a load is an exponentially weighted mean with a half-life of ``HALF_LIFE``, so that a load
that changes every minute is reported as constant.
Rule 2: if the published plan has what a former owner measured, the mean begins with that. Otherwise
the load is reported only after it was measured for ``MEASURED_MIN``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from eventproc._core.placement.loads import WorkDone, as_report

HALF_LIFE: Final = timedelta(minutes=6)
MEASURED_MIN: Final = timedelta(minutes=7.5)

_WEIGHT_MIN: Final[float] = 1 - 0.5 ** (MEASURED_MIN / HALF_LIFE) - 1e-9  # rounding


@dataclass(slots=True)
class _Measured:
    amount: float
    at_s: float
    mean: float
    weight: float
    """How much of the mean was measured: from 0 to 1."""


class LoadMeter:
    """The loads of the partitions that this processor serves."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._by = ""
        self._measured: dict[str, _Measured] = {}

    def report(self, by: str, work: Mapping[str, WorkDone], known: Mapping[str, float]) -> str:
        """Measure the work since the last call; return the loads as text for the member record.

        Args:
            by: The field of ``WorkDone`` that is the load.
            work: The work done so far for each partition that this processor serves.
            known: The loads in the published plan, measured by former owners.
        """
        if by != self._by:
            self._by, self._measured = by, {}
        now_s = self._clock()
        for partition_id, done in work.items():
            self._take(partition_id, float(getattr(done, by)), known.get(partition_id), now_s)
        for partition_id in self._measured.keys() - work.keys():
            del self._measured[partition_id]
        return as_report(
            by,
            {
                p: each.mean / each.weight
                for p, each in self._measured.items()
                if each.weight >= _WEIGHT_MIN
            },
        )

    def _take(self, partition_id: str, amount: float, known: float | None, now_s: float) -> None:
        former = self._measured.get(partition_id)
        if former is None:
            mean, weight = (0.0, 0.0) if known is None else (known, 1.0)
            self._measured[partition_id] = _Measured(amount, now_s, mean, weight)
            return
        passed_s = now_s - former.at_s
        # The amount is less than before: it is that of a new pump, which began at zero.
        if passed_s <= 0 or amount < former.amount:
            former.amount, former.at_s = amount, now_s
            return
        kept = 0.5 ** (passed_s / HALF_LIFE.total_seconds())
        rate = (amount - former.amount) / passed_s
        former.mean = former.mean * kept + rate * (1 - kept)
        former.weight = former.weight * kept + 1 - kept
        former.amount, former.at_s = amount, now_s
