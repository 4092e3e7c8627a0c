"""OpenTelemetry counters of the sink's committed batches."""

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint

from eventproc.models import ConsumerGroup
from eventproc.models._statistics import DeliveryCounters
from eventproc.telemetry._batches import count_batch

GROUP = ConsumerGroup(fully_qualified_namespace="127.0.0.1:5672", eventhub_name="orders")


def test_batches_add_up_by_group():
    """The counters have the same names as those of a processor."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    counters = DeliveryCounters()
    counters.handled_count, counters.retried_count, counters.dead_lettered_count = 10, 3, 1
    for _ in range(2):
        count_batch(GROUP, counters, 7, meter_provider=provider)
    data = reader.get_metrics_data()
    assert data is not None
    (resource,) = data.resource_metrics
    (scope,) = resource.scope_metrics
    points = {
        metric.name: point
        for metric in scope.metrics
        for point in metric.data.data_points
        if isinstance(point, NumberDataPoint)
    }

    assert {name.removeprefix("eventproc.events."): p.value for name, p in points.items()} == {
        "handled": 20,
        "retried": 6,
        "dead_lettered": 2,
        "skipped": 0,
        "repeated": 14,
    }
    assert points["eventproc.events.handled"].attributes == {
        "messaging.system": "eventhubs",
        "messaging.destination.name": "orders",
        "messaging.consumer.group.name": "$Default",
        "server.address": "127.0.0.1",
        "server.port": 5672,
    }
