"""Links of spans to the spans of publishers."""

from typing import Any, ClassVar

from eventproc.errors import SourceRejectedError
from eventproc.telemetry._spans import links_to_publishers

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Event:
    """As much of an event as links need."""

    properties: ClassVar = {"traceparent": TRACE}


class Malformed:
    """An event whose properties cannot be decoded."""

    @property
    def properties(self) -> Any:
        raise SourceRejectedError("event 7 cannot be decoded")


def test_an_event_that_cannot_be_decoded_has_no_link():
    """With tracing, too, a handler that needs no properties gets it."""
    events: Any = [Malformed(), Event()]

    (link,) = links_to_publishers(events)

    assert f"{link.context.span_id:016x}" in TRACE
