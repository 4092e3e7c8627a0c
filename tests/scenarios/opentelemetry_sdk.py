"""OpenTelemetry's SDK, for tests that check what it gets."""

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import messaging_attributes

from eventproc.telemetry import Telemetry
from tests.scenarios.group_setup import Setup


class Sdk:
    """OpenTelemetry's SDK, which keeps everything in memory."""

    def __init__(self):
        self.reader = InMemoryMetricReader()
        self.exporter = InMemorySpanExporter()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracers = tracers
        self.telemetry = Telemetry(
            meter_provider=MeterProvider([self.reader]), tracer_provider=tracers
        )

    def setup(self, partition_count=1) -> Setup:
        """A setup whose processors report to this SDK."""
        setup = Setup(partition_count)
        setup.telemetry = self.telemetry
        return setup

    def points(self, name):
        """The data points of a metric, by collecting now."""
        data = self.reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else [])
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def value(self, name):
        """The value of a metric that has one point."""
        (point,) = self.points(name)
        return point.value

    def by_partition(self, name):
        """The values of a gauge, by partition."""
        key = messaging_attributes.MESSAGING_DESTINATION_PARTITION_ID
        return {point.attributes[key]: point.value for point in self.points(name)}

    def count(self, name, **attributes):
        """The number of durations with these attributes; ``_`` stands for a dot."""
        wanted = {key.replace("_", "."): value for key, value in attributes.items()}
        return sum(
            point.count
            for point in self.points(name)
            if wanted.items() <= dict(point.attributes).items()
        )

    def spans(self, name):
        """The spans that have ended."""
        return [span for span in self.exporter.get_finished_spans() if span.name == name]
