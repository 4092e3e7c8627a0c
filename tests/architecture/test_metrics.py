"""What is measured stands in ``docs/metrics.md``, and the reverse."""

import re

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from eventproc.telemetry import Telemetry
from eventproc.telemetry.instruments import COUNTS, GAUGES, PARTITION_GAUGES

ROW = re.compile(r"^\| `((?:eventproc|messaging)\.[a-z_.]+)` \|", re.MULTILINE)
DURATIONS = {
    "messaging.process.duration",
    "messaging.client.operation.duration",
    "eventproc.cycle.duration",
}


def test_the_catalogue_of_metrics_is_complete(root):
    """Operators alert on these names: each is listed once, and none is listed that is gone."""
    read = [i.name for table in (COUNTS, GAUGES, PARTITION_GAUGES) for i in table]
    in_code = sorted([*DURATIONS, *read])
    page = (root / "docs/metrics.md").read_text("utf-8")

    assert sorted(ROW.findall(page)) == in_code


def test_durations_are_those_that_exist():
    """Instruments that are not in a table are found by what they record."""
    reader = InMemoryMetricReader()
    telemetry = Telemetry(meter_provider=MeterProvider([reader]))
    for histogram in (
        telemetry.process_duration,
        telemetry.operation_duration,
        telemetry.cycle_duration,
    ):
        histogram.record(1.0)
    data = reader.get_metrics_data()
    assert data is not None
    names = {
        metric.name
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }

    assert names == DURATIONS
