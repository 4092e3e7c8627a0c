"""What OpenTelemetry's SDK gets from real processors, on virtual time."""

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from opentelemetry import trace
from opentelemetry.semconv._incubating.attributes import messaging_attributes
from opentelemetry.semconv._incubating.metrics import messaging_metrics
from opentelemetry.trace import SpanKind, StatusCode

from eventproc import BlockingPartitionHandler, CheckpointPolicy, PartitionHandler
from eventproc.telemetry import Telemetry
from eventproc.testing import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds
from tests.scenarios.opentelemetry_sdk import Sdk

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-1bf7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01"


@pytest.fixture(name="sdk")
def _sdk():
    return Sdk()


async def test_names_of_metrics_and_spans_follow_the_semantic_conventions(sdk):
    """If the conventions have a name, exactly that one."""
    setup = sdk.setup()
    setup.publish(1)
    async with setup.processor():
        await seconds(10)

    (process,) = sdk.points(messaging_metrics.MESSAGING_PROCESS_DURATION)
    (checkpoint,) = sdk.points(messaging_metrics.MESSAGING_CLIENT_OPERATION_DURATION)
    (received,) = sdk.points(messaging_metrics.MESSAGING_CLIENT_CONSUMED_MESSAGES)
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
    assert received.attributes == {**common, name: "receive"}
    assert span.attributes == {
        **process.attributes,
        messaging_attributes.MESSAGING_DESTINATION_PARTITION_ID: "0",
        messaging_attributes.MESSAGING_BATCH_MESSAGE_COUNT: 1,
    }
    assert span.kind is SpanKind.CONSUMER


async def test_the_duration_of_a_call_has_its_outcome(sdk):
    """On the clock of the processor's loop."""
    setup = sdk.setup()

    class Failing(Noting):
        async def process_events(self, context, events):
            await asyncio.sleep(2)
            if len(sdk.spans("process hub")) < 2:
                raise KeyError("no such order")
            await super().process_events(context, events)

    setup.publish(1)
    async with setup.processor(lambda: Failing(setup)):
        await seconds(10)

    points = sdk.points("messaging.process.duration")
    first, _, last = sdk.spans("process hub")

    assert sdk.count("messaging.process.duration", error_type="KeyError") == 2
    assert sorted((point.count, point.sum) for point in points) == [(1, 2), (2, 4)]
    assert points[0].explicit_bounds[0] == 0.005
    assert first.status.status_code is StatusCode.ERROR
    assert first.attributes["error.type"] == "KeyError"
    assert first.events[0].name == "exception"
    assert last.status.status_code is StatusCode.UNSET


async def test_the_error_of_a_single_event_is_recorded_unwrapped(sdk):
    """Not the error that says which event it was."""
    setup = sdk.setup()

    class OneByOne(PartitionHandler):
        async def process_event(self, context, event):
            raise KeyError("no such order")

    setup.publish(1)
    async with setup.processor(OneByOne):
        await seconds(0.35)

    assert sdk.count("messaging.process.duration", error_type="KeyError") >= 1
    assert sdk.spans("process hub")[0].attributes["error.type"] == "KeyError"


async def test_a_cancelled_call_is_not_an_error(sdk):
    """It has a type of its own, so that it can be told apart."""
    setup = sdk.setup()

    class Endless(Noting):
        async def process_events(self, context, events):
            await asyncio.Event().wait()

    setup.publish(1)
    async with setup.processor(lambda: Endless(setup), shutdown_timeout=timedelta(seconds=1)):
        await seconds(10)

    (span,) = sdk.spans("process hub")

    assert sdk.count("messaging.process.duration", error_type="CancelledError") == 1
    assert (span.status.status_code, span.events) == (StatusCode.UNSET, ())


async def test_a_span_links_to_the_traces_of_its_publishers(sdk):
    """Once to each. An invalid trace context is ignored."""
    setup = sdk.setup()
    properties = [
        {"traceparent": PARENT, "tracestate": "vendor=1"},
        {"Diagnostic-Id": PARENT},
        {"Diagnostic-Id": OTHER.encode()},
        {"traceparent": "nonsense"},
        {"traceparent": 7},
        {},
    ]
    for each in properties:
        setup.hub.publish(b"", partition_id="0", properties=each)
    async with setup.processor():
        await seconds(10)
        setup.publish(1)
        await seconds(10)

    span, next_span = sdk.spans("process hub")
    contexts = [link.context for link in span.links]

    assert [f"{context.trace_id:x}" for context in contexts] == [
        "af7651916cd43dd8448eb211c80319c",
        "1bf7651916cd43dd8448eb211c80319c",
    ]
    assert contexts[0].is_remote
    assert dict(contexts[0].trace_state) == {"vendor": "1"}
    assert span.parent is next_span.parent is None


def test_a_span_started_by_the_handler_is_a_child(sdk):
    """In blocking handlers, too, whose thread gets the context."""
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
    setup = sdk.setup()

    async def scenario(make: Callable):
        setup.publish(1)
        async with setup.processor(make):
            await (asyncio.to_thread(handled.wait) if make is Ordinary else seconds(10))

    run_virtual(scenario(lambda: Tracing(setup)))
    asyncio.run(scenario(Ordinary))
    own = sdk.spans("own")
    process = sdk.spans("process hub")
    (checkpoint,) = sdk.spans("checkpoint hub")

    assert [span.parent.span_id for span in own] == [span.context.span_id for span in process]
    assert checkpoint.parent.span_id == own[0].context.span_id
    assert checkpoint.kind is SpanKind.CLIENT


async def test_checkpoints_by_the_policy_start_no_traces(sdk):
    """They are measured; a trace every few seconds would be noise."""
    setup = sdk.setup()
    setup.publish(1)
    async with setup.processor():
        await seconds(10)

    assert sdk.count("messaging.client.operation.duration", messaging_operation_name="checkpoint")
    assert sdk.spans("checkpoint hub") == []


async def test_the_duration_of_a_failed_checkpoint_has_its_outcome(sdk):
    """Here the store does not answer. The retry that succeeds is recorded separately."""
    setup = sdk.setup()
    async with setup.processor(checkpoint_policy=CheckpointPolicy.manual()) as processor:
        await seconds(1)
        setup.publish(1)
        await seconds(1)
        with setup.store_by_owner["a"].outage():
            stopping = asyncio.create_task(processor.stop())
            await seconds(16)
        await stopping

    assert sdk.count("messaging.client.operation.duration", error_type="unknown") > 0


async def test_without_an_sdk_no_spans_or_links_are_made():
    """The handler is called directly."""
    setup = Setup()
    current = []

    class Looking(Noting):
        async def process_events(self, context, events):
            current.append(trace.get_current_span())

    setup.hub.publish(b"", partition_id="0", properties={"traceparent": PARENT})
    async with setup.processor(lambda: Looking(setup)):
        await seconds(1)

    assert current == [trace.INVALID_SPAN]
    assert not Telemetry().is_tracing
