"""What committed batches did, for what runs no processor: the sink of a query in Spark.

The names are those of a processor's counts, in a scope of their own, because these are added to
batch by batch and those are read from statistics.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

from opentelemetry.metrics import Counter, MeterProvider, get_meter

from eventproc.models import ConsumerGroup
from eventproc.statistics import Tally
from eventproc.telemetry.reporting import group_attributes
from eventproc.version import EVENTPROC_VERSION

SCOPE: Final = "eventproc.batches"

_COUNTED: Final = {
    "eventproc.events.handled": "Events handled.",
    "eventproc.events.retried": "Events handed over again after a failed call.",
    "eventproc.events.dead_lettered": "Events given up and stored as dead letters.",
    "eventproc.events.skipped": "Events given up and left out.",
    "eventproc.events.repeated": "Events of a repeated batch that a checkpoint covered already.",
}


def count_batch(
    group: ConsumerGroup,
    tally: Tally,
    repeated_count: int,
    *,
    meter_provider: MeterProvider | None = None,
) -> None:
    """Add what a batch did to the counts of its group.

    Without a provider: to the one that the program set, or nowhere.
    """
    counters, attributes = _counters(meter_provider), group_attributes(group)
    counts = {
        "handled": tally.handled_count,
        "retried": tally.retried_count,
        "dead_lettered": tally.dead_lettered_count,
        "skipped": tally.skipped_count,
        "repeated": repeated_count,
    }
    for name, count in counts.items():
        counters[f"eventproc.events.{name}"].add(count, attributes)


@cache
def _counters(meter_provider: MeterProvider | None) -> Mapping[str, Counter]:
    meter = get_meter(SCOPE, EVENTPROC_VERSION, meter_provider=meter_provider)
    return {name: meter.create_counter(name, "{event}", what) for name, what in _COUNTED.items()}
