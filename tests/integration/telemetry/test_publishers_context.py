"""Trace contexts written by Azure's producer are linked to the spans of a processor."""

import asyncio

from azure.eventhub import EventData, EventHubProducerClient
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import EventProcessor, PartitionHandler
from eventproc.emulator import EventHubsEmulator
from eventproc.sources.eventhubs import EventHubSource
from eventproc.telemetry import Telemetry

OLDER = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
NEWER = b"00-1bf7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01"


def test_a_span_links_to_the_span_of_azures_producer():
    """Names and values of the properties are bytes, as Azure's client writes them."""
    exporter = InMemorySpanExporter()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    handled = asyncio.Event()

    class Counting(PartitionHandler):
        async def process_events(self, context, events):
            if events[-1].sequence_number == 1:
                handled.set()

    async def run(connection_string):
        processor = EventProcessor(
            source=EventHubSource.from_connection_string(connection_string),
            store=MemoryCheckpointStore(),
            handler=Counting,
            telemetry=Telemetry(tracer_provider=tracers),
        )
        async with processor, asyncio.timeout(20):
            await handled.wait()

    with EventHubsEmulator({"orders": 1}) as emulator:
        connection_string = emulator.connection_string_for("orders")
        with EventHubProducerClient.from_connection_string(connection_string) as producer:
            for name, parent in ((b"Diagnostic-Id", OLDER), (b"traceparent", NEWER)):
                event = EventData(b"order")
                event.properties = {name: parent}
                producer.send_event(event)
        asyncio.run(run(connection_string))
    links = [link for span in exporter.get_finished_spans() for link in span.links]

    assert [f"{link.context.trace_id:032x}" for link in links] == [
        "0af7651916cd43dd8448eb211c80319c",
        "1bf7651916cd43dd8448eb211c80319c",
    ]
