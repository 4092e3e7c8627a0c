"""What OpenTelemetry's own SDK gets from real processors, on virtual time."""

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import messaging_attributes
from opentelemetry.semconv._incubating.metrics import messaging_metrics
from opentelemetry.trace import SpanKind, StatusCode

from eventproc import BlockingPartitionHandler, CheckpointPolicy
from eventproc.telemetry import Telemetry
from eventproc.testing import run_virtual
from tests.unit.eventproc.scene import Noting, Scene, seconds

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-1bf7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01"


class Sdk:
    """OpenTelemetry's SDK, with everything kept in memory."""

    def __init__(self):
        self.reader = InMemoryMetricReader()
        self.exporter = InMemorySpanExporter()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracers = tracers
        self.telemetry = Telemetry(
            meter_provider=MeterProvider([self.reader]), tracer_provider=tracers
        )

    def scene(self, partition_count=1) -> Scene:
        """A scene whose processors report here."""
        scene = Scene(partition_count)
        scene.telemetry = self.telemetry
        return scene

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
        """How many durations were recorded with these attributes; ``_`` stands for a dot."""
        wanted = {key.replace("_", "."): value for key, value in attributes.items()}
        return sum(
            point.count
            for point in self.points(name)
            if wanted.items() <= dict(point.attributes).items()
        )

    def spans(self, name):
        """The spans that have ended."""
        return [span for span in self.exporter.get_finished_spans() if span.name == name]


@pytest.fixture(name="sdk")
def _sdk():
    return Sdk()


def test_names_are_those_of_the_conventions(sdk):
    """Where the conventions have a name, it is that one, letter by letter."""
    scene = sdk.scene()

    async def story():
        scene.publish(1)
        async with scene.processor():
            await seconds(10)

    run_virtual(story())
    (process,) = sdk.points(messaging_metrics.MESSAGING_PROCESS_DURATION)
    (checkpoint,) = sdk.points(messaging_metrics.MESSAGING_CLIENT_OPERATION_DURATION)
    (span,) = sdk.spans("process hub")

    common = {
        messaging_attributes.MESSAGING_SYSTEM: "eventhubs",
        messaging_attributes.MESSAGING_DESTINATION_NAME: "hub",
        messaging_attributes.MESSAGING_CONSUMER_GROUP_NAME: "$Default",
        "server.address": "memory",
    }
    name = messaging_attributes.MESSAGING_OPERATION_NAME
    kind = messaging_attributes.MESSAGING_OPERATION_TYPE
    operations = messaging_attributes.MessagingOperationTypeValues
    assert process.attributes == {**common, name: "process", kind: operations.PROCESS.value}
    assert checkpoint.attributes == {**common, name: "checkpoint", kind: operations.SETTLE.value}
    assert span.attributes == {
        **process.attributes,
        messaging_attributes.MESSAGING_DESTINATION_PARTITION_ID: "0",
        messaging_attributes.MESSAGING_BATCH_MESSAGE_COUNT: 1,
    }
    assert span.kind is SpanKind.CONSUMER


def test_a_call_is_measured_with_its_outcome(sdk):
    """On the clock of the processor's loop."""
    scene = sdk.scene()

    class Failing(Noting):
        async def process_events(self, context, events):
            await asyncio.sleep(2)
            if len(sdk.spans("process hub")) < 2:
                raise KeyError("no such order")
            await super().process_events(context, events)

    async def story():
        scene.publish(1)
        async with scene.processor(lambda: Failing(scene)):
            await seconds(10)

    run_virtual(story())
    points = sdk.points("messaging.process.duration")
    first, _, last = sdk.spans("process hub")

    assert sdk.count("messaging.process.duration", error_type="KeyError") == 2
    assert sorted((point.count, point.sum) for point in points) == [(1, 2), (2, 4)]
    assert points[0].explicit_bounds[0] == 0.005
    assert first.status.status_code is StatusCode.ERROR
    assert first.attributes["error.type"] == "KeyError"
    assert first.events[0].name == "exception"
    assert last.status.status_code is StatusCode.UNSET


def test_a_call_that_is_cut_off_is_no_error(sdk):
    """It has a type, so that it can be told apart, but nobody did anything wrong."""
    scene = sdk.scene()

    class Endless(Noting):
        async def process_events(self, context, events):
            await asyncio.Event().wait()

    async def story():
        scene.publish(1)
        async with scene.processor(lambda: Endless(scene), shutdown_timeout=timedelta(seconds=1)):
            await seconds(10)

    run_virtual(story())
    (span,) = sdk.spans("process hub")

    assert sdk.count("messaging.process.duration", error_type="CancelledError") == 1
    assert (span.status.status_code, span.events) == (StatusCode.UNSET, ())


def test_a_span_links_to_those_who_published(sdk):
    """Once to each; what is no trace context is passed over."""
    scene = sdk.scene()
    properties = [
        {"traceparent": PARENT, "tracestate": "vendor=1"},
        {"Diagnostic-Id": PARENT},
        {"Diagnostic-Id": OTHER.encode()},
        {"traceparent": "nonsense"},
        {"traceparent": 7},
        {},
    ]

    async def story():
        for each in properties:
            scene.hub.publish(b"", partition_id="0", properties=each)
        async with scene.processor():
            await seconds(10)

    run_virtual(story())
    (span,) = sdk.spans("process hub")
    contexts = [link.context for link in span.links]

    assert [f"{context.trace_id:x}" for context in contexts] == [
        "af7651916cd43dd8448eb211c80319c",
        "1bf7651916cd43dd8448eb211c80319c",
    ]
    assert contexts[0].is_remote
    assert dict(contexts[0].trace_state) == {"vendor": "1"}
    assert span.parent is None


def test_a_span_of_the_handlers_own_is_a_child(sdk):
    """Of both kinds of handler: the thread of ordinary functions gets the context, too."""
    tracer = sdk.tracers.get_tracer("user")

    class Tracing(Noting):
        async def process_events(self, context, events):
            with tracer.start_as_current_span("own"):
                await context.checkpoint(events[0])

    class Ordinary(BlockingPartitionHandler):
        def process_events(self, context, events):
            with tracer.start_as_current_span("own"):
                handled.set()

    handled = threading.Event()
    scene = sdk.scene()

    async def story(make: Callable):
        scene.publish(1)
        async with scene.processor(make):
            await (asyncio.to_thread(handled.wait) if make is Ordinary else seconds(10))

    run_virtual(story(lambda: Tracing(scene)))
    asyncio.run(story(Ordinary))
    own = sdk.spans("own")
    process = sdk.spans("process hub")
    (checkpoint,) = sdk.spans("checkpoint hub")

    assert [span.parent.span_id for span in own] == [span.context.span_id for span in process]
    assert checkpoint.parent.span_id == own[0].context.span_id
    assert checkpoint.kind is SpanKind.CLIENT


def test_checkpoints_by_the_policy_make_no_traces(sdk):
    """They are measured; a trace of its own every few seconds would be noise."""
    scene = sdk.scene()

    async def story():
        scene.publish(1)
        async with scene.processor():
            await seconds(10)

    run_virtual(story())

    assert sdk.count("messaging.client.operation.duration", messaging_operation_name="checkpoint")
    assert sdk.spans("checkpoint hub") == []


def test_a_checkpoint_that_fails_is_told_by_its_outcome(sdk):
    """No answer, here; the retry that succeeds is another one."""
    scene = sdk.scene()

    async def story():
        async with scene.processor(checkpoint_policy=CheckpointPolicy.manual()) as processor:
            await seconds(1)
            scene.publish(1)
            await seconds(1)
            with scene.store_by_owner["a"].outage():
                stopping = asyncio.create_task(processor.stop())
                await seconds(16)
            await stopping

    run_virtual(story())

    assert sdk.count("messaging.client.operation.duration", error_type="unknown") > 0


def test_gauges_tell_of_each_partition_and_of_the_processor(sdk):
    """Lag by partition; owned, served, settled and the least margin by group."""
    scene = sdk.scene(partition_count=2)
    told = {}

    class Stuck(Noting):
        async def process_events(self, context, events):
            if context.partition_id == "1":
                await context.checkpoint(events[0])
                await asyncio.Event().wait()

    async def story():
        scene.publish(5, "0")
        scene.publish(5, "1")
        async with scene.processor(lambda: Stuck(scene), shutdown_timeout=timedelta(seconds=1)):
            await seconds(31)
            told["lag"] = sdk.by_partition("eventproc.lag.events")
            told["lag time"] = sdk.by_partition("eventproc.lag.time")
            for name in ("partitions.owned", "partitions.served", "lease.margin", "settled"):
                told[name] = sdk.value(f"eventproc.{name}")

    run_virtual(story())

    assert told["lag"] == {"0": 0, "1": 4}
    assert told["lag time"] == {"0": 0, "1": 0}
    assert (told["partitions.owned"], told["partitions.served"], told["settled"]) == (2, 2, 1)
    assert 30 < told["lease.margin"] < 60
    assert sdk.points("eventproc.lag.events") == []


def test_counts_are_those_of_the_statistics_and_do_not_go_back(sdk):
    """Over a stop and a second start, and over two processors in one process."""
    scene = sdk.scene(partition_count=4)
    seen, true = [], []

    def look(*processors):
        counts = [processor.statistics() for processor in processors]
        true.append((sum(c.claim_count for c in counts), sum(c.hand_over_count for c in counts)))
        seen.append((sdk.value("eventproc.claims"), sdk.value("eventproc.hand_overs")))

    async def story():
        first, second = scene.processor(owner_id="a"), scene.processor(owner_id="b")
        async with first:
            await seconds(10)
            async with second:
                await seconds(30)
                look(first, second)
            await seconds(10)
        seen.append((sdk.value("eventproc.claims"), sdk.value("eventproc.hand_overs")))
        async with first:
            await seconds(10)
            look(first, second)

    run_virtual(story())

    assert seen[0] == true[0] == (6, 2)
    assert seen[1] == (8, 2)
    assert seen[2] == (12, 2)
    assert true[1][0] == 12


def test_cycles_are_measured_the_failing_ones_too(sdk):
    """An outage of the store shows as an error type."""
    scene = sdk.scene()

    async def story():
        async with scene.processor():
            await seconds(25)
            with scene.store_by_owner["a"].outage():
                await seconds(15)
            await seconds(15)

    run_virtual(story())

    assert sdk.count("eventproc.cycle.duration") > 5
    assert sdk.count("eventproc.cycle.duration", error_type="StoreUnavailableError") > 1


def test_without_an_sdk_nothing_is_built():
    """No link, no span: the handler is called as it is."""
    scene = Scene()
    current = []

    class Looking(Noting):
        async def process_events(self, context, events):
            current.append(trace.get_current_span())

    async def story():
        scene.hub.publish(b"", partition_id="0", properties={"traceparent": PARENT})
        async with scene.processor(lambda: Looking(scene)):
            await seconds(1)

    run_virtual(story())

    assert current == [trace.INVALID_SPAN]
    assert not Telemetry().is_tracing


def test_a_reader_in_another_thread_is_not_disturbed(sdk, caplog):
    """It collects again and again while partitions come and go."""
    scene = sdk.scene(partition_count=16)
    is_over = threading.Event()

    def read():
        while not is_over.is_set():
            sdk.reader.get_metrics_data()

    async def story():
        async with scene.processor(owner_id="a"):
            for number in range(10):
                async with scene.processor(owner_id=f"b{number}"):
                    await seconds(20)

    reading = threading.Thread(target=read)
    reading.start()
    run_virtual(story())
    is_over.set()
    reading.join()

    assert [r for r in caplog.records if r.name.startswith("opentelemetry")] == []
