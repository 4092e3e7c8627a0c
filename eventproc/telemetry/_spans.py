"""Links of spans to publishers, and how a span ends."""

from collections.abc import Sequence
from typing import Final

from opentelemetry import trace
from opentelemetry.trace import Link, Span, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from eventproc.errors import SourceError
from eventproc.models import ReceivedEvent

LINKS_MAX: Final = 128
"""Most links of one span; the default limit of the SDK."""

_PROPAGATOR: Final = TraceContextTextMapPropagator()

Attributes = dict[str, str | int]


def links_to_publishers(events: Sequence[ReceivedEvent]) -> list[Link]:
    """Return links to the spans in which the events were published, if events have a trace context.

    Azure's clients write the W3C trace context into the event's properties, older releases as
    ``Diagnostic-Id``. Events that were published in the same span share one link.
    """
    carriers: dict[str, dict[str, str]] = {}
    for event in events:
        if len(carriers) >= LINKS_MAX:
            break
        try:
            properties = event.properties
        except SourceError:
            continue  # They cannot be decoded. Whether the handler needs them is not known here.
        if not properties:
            continue
        parent = properties.get("traceparent") or properties.get("Diagnostic-Id")
        if isinstance(parent, str | bytes):
            text = _text(parent)
            state = properties.get("tracestate")
            carriers.setdefault(text, {"traceparent": text})
            if isinstance(state, str | bytes):
                carriers[text]["tracestate"] = _text(state)
    contexts = [
        trace.get_current_span(_PROPAGATOR.extract(carrier)).get_span_context()
        for carrier in carriers.values()
    ]
    return [Link(context) for context in contexts if context.is_valid]


def with_error(attributes: Attributes, failure: BaseException | str | None) -> Attributes:
    """Return the attributes, with ``error.type`` if the operation failed."""
    if failure is None:
        return attributes
    return {**attributes, "error.type": error_type(failure)}


def error_type(failure: BaseException | str) -> str:
    """Return the name of a failure's class, which has the low cardinality that attributes need."""
    return failure if isinstance(failure, str) else type(failure).__qualname__


def end_span(span: Span, failure: BaseException | str | None) -> None:
    """End the span; record the exception or the outcome if the operation failed."""
    if failure is not None and span.is_recording():
        span.set_attribute("error.type", error_type(failure))
        if isinstance(failure, Exception):  # a cancelled operation did not fail
            span.record_exception(failure)
            span.set_status(Status(StatusCode.ERROR, str(failure)))
    span.end()


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("ascii", "replace")
