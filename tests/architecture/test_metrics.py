"""``docs/metrics.md`` lists exactly the instruments that exist."""

import re

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from eventproc.telemetry import Telemetry
from eventproc.telemetry._instruments import INSTRUMENTS, PARTITION_GAUGES

ROW = re.compile(r"^\| `((?:eventproc|messaging)\.[a-z_.]+)` \|", re.MULTILINE)
DURATIONS = {
    "messaging.process.duration",
    "messaging.client.operation.duration",
    "eventproc.cycle.duration",
}


def test_the_catalogue_of_metrics_is_complete(root):
    """Each instrument has one row in the page, and each row an instrument."""
    tables = [table for kind in INSTRUMENTS for table in (kind.counts, kind.gauges)]
    read = [i.name for table in (*tables, PARTITION_GAUGES) for i in table]
    in_code = sorted([*DURATIONS, *read])
    page = (root / "docs/metrics.md").read_text("utf-8")

    assert sorted(ROW.findall(page)) == in_code


def test_the_list_of_histograms_is_complete():
    """``DURATIONS`` has the names of the instruments that are not in a table."""
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
