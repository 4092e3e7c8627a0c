"""Reports a processor's metrics and spans to OpenTelemetry.

Rule 1: counters and gauges are read from the processor's statistics when they are collected, so
they cost nothing during delivery.
Rule 2: durations and spans are recorded for each handler call, checkpoint write and cycle, never
for each event. Without an SDK no spans are built.
Rule 3: only gauges and spans have a partition id. Of a partition's gauge a group has one series,
that of the owner; a counter or histogram would have one for each partition in every process.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import cache, partial
from threading import RLock
from typing import Any, Final
from weakref import WeakSet

from opentelemetry import trace
from opentelemetry.context import attach, detach
from opentelemetry.metrics import (
    CallbackOptions,
    Histogram,
    Meter,
    MeterProvider,
    Observation,
    get_meter,
)
from opentelemetry.trace import Span, SpanKind, TracerProvider

from eventproc._base.tasks import CallEndedEarlyError
from eventproc._base.version import __version__
from eventproc._delivery.handler import BatchError, RowError
from eventproc._delivery.scope import CallReport
from eventproc.errors import ConfigurationError
from eventproc.models import (
    CheckpointResult,
    CheckpointUpdate,
    ConsumerGroup,
    ReceivedEvent,
    WriteOutcome,
)
from eventproc.models._statistics import GroupStatistics, ProcessorStatistics, PumpStatistics
from eventproc.telemetry._instruments import (
    INSTRUMENTS,
    PARTITION_GAUGES,
    Count,
    Gauge,
    Instrument,
)
from eventproc.telemetry._spans import Attributes, end_span, links_to_publishers, with_error

SCOPE: Final = "eventproc"

BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
"""Bucket boundaries of all durations, in seconds, from the semantic conventions for messaging."""

LOOKS_EVERY_S: Final = 1.0

READS_MAX: Final = 3
"""Attempts to read statistics from another thread while the event loop changes them."""

PROCESS: Final = {"messaging.operation.name": "process", "messaging.operation.type": "process"}
CHECKPOINT: Final = {"messaging.operation.name": "checkpoint", "messaging.operation.type": "settle"}

Statistics = Callable[[], GroupStatistics]
Write = Callable[[CheckpointUpdate], Awaitable[CheckpointResult]]


class Telemetry:
    """The OpenTelemetry instruments of processors, and the tracer for their spans.

    Without arguments it uses the program's global providers, also if they are set later. Share one
    instance among processors, because each instance creates the instruments.
    """

    def __init__(
        self,
        *,
        meter_provider: MeterProvider | None = None,
        tracer_provider: TracerProvider | None = None,
    ) -> None:
        self._lock = RLock()
        self._processors: WeakSet[Instrumentation] = WeakSet()
        self._former: dict[tuple[str, str, str], Counter[str]] = {}
        """For each group, the counts of processors that have stopped."""
        self._shown: Counter[tuple[tuple[str, str, str], str]] = Counter()
        self._attributes: dict[tuple[str, str, str], Attributes] = {}
        self.tracer = trace.get_tracer(SCOPE, __version__, tracer_provider=tracer_provider)
        self._is_tracing = tracer_provider is not None
        self._looks_again_s = 0.0
        self.meter_provider = meter_provider
        """The meter provider; ``None`` for the global one."""

        meter = get_meter(SCOPE, __version__, meter_provider=meter_provider)
        self.process_duration = _histogram(
            meter, "messaging.process.duration", "Calls of process_events."
        )
        self.operation_duration = _histogram(
            meter, "messaging.client.operation.duration", "Writes of checkpoints."
        )
        self.cycle_duration = _histogram(
            meter, "eventproc.cycle.duration", "Cycles: poll the store, decide, write."
        )
        for kind in INSTRUMENTS:
            for count in kind.counts:
                read = partial(self._count, kind.of, count)
                meter.create_observable_counter(count.name, [read], count.unit, count.description)
            for gauge in kind.gauges:
                value = partial(self._gauge, kind.of, gauge)
                meter.create_observable_gauge(gauge.name, [value], gauge.unit, gauge.description)
        for each in PARTITION_GAUGES:
            meter.create_observable_gauge(
                each.name, [partial(self._each, each)], each.unit, each.description
            )

    @property
    def is_tracing(self) -> bool:
        """Whether a tracer provider is set.

        While there is none, this looks for one once a second: each look reads the environment.
        """
        if not self._is_tracing and (now_s := time.monotonic()) >= self._looks_again_s:
            self._looks_again_s = now_s + LOOKS_EVERY_S
            provider = trace.get_tracer_provider()
            self._is_tracing = not isinstance(provider, trace.ProxyTracerProvider)
        return self._is_tracing

    def _begin(self, processor: "Instrumentation") -> None:
        """Reports a processor from now on."""
        with self._lock:
            self._former.setdefault(processor.group.key, Counter())
            self._attributes[processor.group.key] = processor.attributes
            self._processors.add(processor)

    def _end(self, processor: "Instrumentation", counted: Counter[str]) -> None:
        """Stop reporting a processor, but keep its counts: a counter must not decrease."""
        with self._lock:
            self._processors.discard(processor)
            self._former[processor.group.key].update(counted)

    def _count(
        self, kind: type[GroupStatistics], count: Count[Any], _: CallbackOptions
    ) -> Iterator[Observation]:
        # Under the lock, so that the counts of a processor that ends are neither missed nor added
        # twice.
        with self._lock:
            totals = {
                key: counted[count.name]
                for key, counted in self._former.items()
                if count.name in counted
            }
            for processor, statistics in self._readings():
                if isinstance(statistics, kind):
                    key = processor.group.key
                    totals[key] = totals.get(key, 0) + count.value(statistics)
        operation = {"messaging.operation.name": count.operation} if count.operation else {}
        for key, total in totals.items():
            # A read from another thread may count a partition twice, or not at all.
            shown = self._shown[key, count.name] = max(total, self._shown[key, count.name])
            yield Observation(shown, {**self._attributes[key], **operation})

    def _gauge(
        self, kind: type[GroupStatistics], gauge: Gauge[Any], _: CallbackOptions
    ) -> Iterator[Observation]:
        values: dict[tuple[str, str, str], list[float]] = {}
        for processor, statistics in self._readings():
            value = gauge.value(statistics) if isinstance(statistics, kind) else None
            if value is not None:
                values.setdefault(processor.group.key, []).append(value)
        for key, several in values.items():
            yield Observation(gauge.combine(several), self._attributes[key])

    def _each(self, each: Instrument[PumpStatistics], _: CallbackOptions) -> Iterator[Observation]:
        for processor, statistics in self._readings():
            pumps = statistics.pumps if isinstance(statistics, ProcessorStatistics) else ()
            for pump in pumps:
                value = each.value(pump)
                if value is not None:
                    yield Observation(value, processor.attributes_of(pump.partition_id))

    def _readings(self) -> Iterator[tuple["Instrumentation", GroupStatistics]]:
        with self._lock:  # a processor that starts now would change the set during the iteration
            processors = list(self._processors)
        for processor in processors:
            statistics = processor.read()
            if statistics is not None:
                yield processor, statistics


@cache
def global_telemetry() -> Telemetry:
    """Return the instance that processors share by default."""
    return Telemetry()


def group_attributes(group: ConsumerGroup) -> Attributes:
    """Return the attributes that identify a group in metrics and spans."""
    if group.is_of_resources:
        return {"eventproc.resource.group": group.name}
    address, _, port = group.fully_qualified_namespace.partition(":")
    attributes: Attributes = {
        "messaging.system": "eventhubs",
        "messaging.destination.name": group.eventhub_name,
        "messaging.consumer.group.name": group.name,
        "server.address": address,
    }
    if port.isdecimal():  # an emulator's namespace has a port
        attributes["server.port"] = int(port)
    return attributes


class Instrumentation:
    """Reports one processor: its statistics, cycles, handler calls and checkpoint writes."""

    def __init__(self, telemetry: Telemetry, group: ConsumerGroup, statistics: Statistics) -> None:
        self._telemetry = telemetry
        self._statistics = statistics
        self.group = group
        self.attributes = group_attributes(group)

    @property
    def meter_provider(self) -> MeterProvider | None:
        """Where the metrics go; ``None``: to the global meter provider."""
        return self._telemetry.meter_provider

    def attributes_of(self, partition_id: str) -> Attributes:
        """Return the attributes of one partition."""
        return {**self.attributes, "messaging.destination.partition.id": partition_id}

    def begin(self) -> None:
        """Start reporting. Call it when the processor starts."""
        self._telemetry._begin(self)  # noqa: SLF001 - its own part

    def end(self) -> None:
        """Stop reporting. Call it when the processor has stopped."""
        statistics = self._statistics()
        counted = Counter(
            {
                count.name: count.value(statistics)
                for kind in INSTRUMENTS
                if isinstance(statistics, kind.of)
                for count in kind.counts
            }
        )
        self._telemetry._end(self, counted)  # noqa: SLF001 - likewise

    def read(self) -> GroupStatistics | None:
        """Return the current statistics; ``None`` if they changed during each attempt to read.

        Also in a process that was forked from that of the processor, which alone has statistics.
        """
        for _ in range(READS_MAX):
            try:
                return self._statistics()
            except (KeyError, RuntimeError):  # a dictionary changed during the read
                continue
            except ConfigurationError:
                break
        return None

    def cycle(self, seconds: float, error: Exception | None = None) -> None:
        """Record the duration of a cycle, and the error if it failed."""
        self._telemetry.cycle_duration.record(seconds, with_error(self.attributes, error))

    def calls(self, partition_id: str) -> CallReport:
        """Return what reports the calls of one partition's handler, by metrics and spans."""
        return _ReportedCalls(self._telemetry, self, partition_id)

    def write(self, write: Write, partition_id: str) -> Write:
        """Return the function with metrics; within a handler call also with a span."""
        telemetry = self._telemetry
        attributes = {**self.attributes, **CHECKPOINT}
        span_attributes = {**self.attributes_of(partition_id), **CHECKPOINT}
        name = f"checkpoint {self.group.eventhub_name}"

        async def reported(update: CheckpointUpdate) -> CheckpointResult:
            span: Span = trace.INVALID_SPAN
            if telemetry.is_tracing and trace.get_current_span().is_recording():
                span = telemetry.tracer.start_span(
                    name, kind=SpanKind.CLIENT, attributes=span_attributes
                )
            began_s = asyncio.get_running_loop().time()
            failure: BaseException | str | None = None
            try:
                result = await write(update)
                if result.outcome is not WriteOutcome.WON:
                    failure = result.outcome.value
            except BaseException as error:
                failure = error
                raise
            finally:
                took_s = asyncio.get_running_loop().time() - began_s
                telemetry.operation_duration.record(took_s, with_error(attributes, failure))
                end_span(span, failure)
            return result

        return reported


class _ReportedCalls(CallReport):
    """Measures each call with events, in a span that links to the spans of the publishers."""

    def __init__(self, telemetry: Telemetry, processor: Instrumentation, partition_id: str) -> None:
        self._telemetry = telemetry
        self._span_name = f"process {processor.group.eventhub_name}"
        self._attributes = {**processor.attributes, **PROCESS}
        self._span_attributes = {**processor.attributes_of(partition_id), **PROCESS}

    def begin(self, events: Sequence[ReceivedEvent]) -> object | None:
        """Begin the span; return it with the token of the context that it is current in."""
        if not self._telemetry.is_tracing:
            return None
        span = self._telemetry.tracer.start_span(
            self._span_name,
            kind=SpanKind.CONSUMER,
            attributes={**self._span_attributes, "messaging.batch.message_count": len(events)},
            links=links_to_publishers(events),
        )
        return span, attach(trace.set_span_in_context(span))

    def end(self, begun: Any, seconds: float, error: BaseException | None) -> None:  # noqa: ANN401 - of ``begin``
        """Record the duration, and end the span."""
        failure = None if error is None else _reported(error)
        self._telemetry.process_duration.record(seconds, with_error(self._attributes, failure))
        if begun is not None:
            span, token = begun
            detach(token)
            end_span(span, failure)


def _reported(error: BaseException) -> BaseException | None:
    """Return the error to report for a call that raised; ``None`` if the call was only stopped."""
    if isinstance(error, CallEndedEarlyError):
        return None
    return error.shown if isinstance(error, BatchError | RowError) else error


def _histogram(meter: Meter, name: str, description: str) -> Histogram:
    return meter.create_histogram(
        name,
        unit="s",
        description=description,
        explicit_bucket_boundaries_advisory=BUCKETS_S,
    )
