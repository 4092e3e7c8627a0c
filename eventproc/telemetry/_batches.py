"""Counters of committed batches, for the Spark sink, which runs no processor.

They have the names of a processor's counters, but another instrumentation scope, because they are
incremented for each batch, while a processor's counters are read from its statistics.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

from opentelemetry.metrics import Counter, MeterProvider, get_meter

from eventproc._base.version import __version__
from eventproc.models import ConsumerGroup
from eventproc.models._statistics import DeliveryCounters
from eventproc.telemetry._instruments import EVENT_COUNTS
from eventproc.telemetry._reporting import group_attributes

SCOPE: Final = "eventproc.batches"

_COUNTED: Final = {
    **EVENT_COUNTS,
    "repeated": "Events of a repeated batch that a checkpoint covered already.",
}


def count_batch(
    group: ConsumerGroup,
    counters: DeliveryCounters,
    repeated_count: int,
    *,
    meter_provider: MeterProvider | None = None,
) -> None:
    """Add the counts of a batch to the counters of its group.

    Without *meter_provider*, the program's global provider is used, if it has set one.
    """
    instruments, attributes = _counters(meter_provider), group_attributes(group)
    counts = {name: getattr(counters, f"{name}_count") for name in EVENT_COUNTS}
    for name, count in {**counts, "repeated": repeated_count}.items():
        instruments[name].add(count, attributes)


@cache
def _counters(meter_provider: MeterProvider | None) -> Mapping[str, Counter]:
    meter = get_meter(SCOPE, __version__, meter_provider=meter_provider)
    return {
        name: meter.create_counter(f"eventproc.events.{name}", "{event}", text)
        for name, text in _COUNTED.items()
    }
