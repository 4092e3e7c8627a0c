"""Spans: whom they link to, and how they end."""

from collections.abc import Sequence
from typing import Final

from opentelemetry import trace
from opentelemetry.trace import Link, Span, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from eventproc.models import ReceivedEvent

LINKS_MAX: Final = 128
"""Of one span; the SDK's own limit unless it is told otherwise."""

_PROPAGATOR: Final = TraceContextTextMapPropagator()

Attributes = dict[str, str | int]


def links_to_publishers(events: Sequence[ReceivedEvent]) -> list[Link]:
    """Links to the spans in which the events were published, as far as the events tell.

    Azure's clients write the W3C context into the properties, the older ones of them as
    ``Diagnostic-Id``. Events that were published in one span make one link.
    """
    carriers: dict[str, dict[str, str]] = {}
    for event in events:
        properties = event.properties
        if not properties:
            continue
        parent = properties.get("traceparent") or properties.get("Diagnostic-Id")
        if isinstance(parent, str | bytes) and len(carriers) < LINKS_MAX:
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
    """Attributes of an operation, with what it failed of if it did."""
    if failure is None:
        return attributes
    return {**attributes, "error.type": error_type(failure)}


def error_type(failure: BaseException | str) -> str:
    """A name for a failure, of which there are few."""
    return failure if isinstance(failure, str) else type(failure).__qualname__


def end_span(span: Span, failure: BaseException | str | None) -> None:
    """End it; with the error that was raised in it, or the outcome that was not wished for."""
    if failure is not None and span.is_recording():
        span.set_attribute("error.type", error_type(failure))
        if isinstance(failure, Exception):  # One that was cut off did not fail.
            span.record_exception(failure)
            span.set_status(Status(StatusCode.ERROR, str(failure)))
    span.end()


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("ascii", "replace")
