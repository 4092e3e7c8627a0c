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
from eventproc.telemetry._reporting import group_attributes

SCOPE: Final = "eventproc.batches"

_COUNTED: Final = {
    "eventproc.events.handled": "Events handled.",
    "eventproc.events.retried": "Events delivered again after a failed call.",
    "eventproc.events.dead_lettered": "Events given up and stored as dead letters.",
    "eventproc.events.skipped": "Events given up and skipped.",
    "eventproc.events.repeated": "Events of a repeated batch that a checkpoint covered already.",
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
    counts = {
        "handled": counters.handled_count,
        "retried": counters.retried_count,
        "dead_lettered": counters.dead_lettered_count,
        "skipped": counters.skipped_count,
        "repeated": repeated_count,
    }
    for name, count in counts.items():
        instruments[f"eventproc.events.{name}"].add(count, attributes)


@cache
def _counters(meter_provider: MeterProvider | None) -> Mapping[str, Counter]:
    meter = get_meter(SCOPE, __version__, meter_provider=meter_provider)
    return {name: meter.create_counter(name, "{event}", what) for name, what in _COUNTED.items()}
