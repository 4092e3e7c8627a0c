"""The meter of a pump's work."""

from datetime import UTC, datetime

from eventproc._core.placement.loads import WorkDone
from eventproc._delivery.scope import WorkMeter
from eventproc.models import ReceivedEvent


def event(number, body=b"xyz"):
    """Return an event."""
    return ReceivedEvent(
        body=body,
        sequence_number=number,
        offset=str(number),
        enqueued_time=datetime(2026, 1, 1, tzinfo=UTC),
    )


def test_calls_at_the_same_time_add_up_and_one_under_way_counts():
    """Key lanes handle several events at once; a long call is not counted at its end only."""
    meter = WorkMeter()
    meter.begin(100)
    meter.begin(102)

    assert meter.work_at(105).busy == 8
    meter.end(105)
    meter.end(105)
    assert meter.work_at(205).busy == 8


def test_handled_events_are_counted_and_bytes_if_they_are_asked_for():
    """Those that are left will be handled again."""
    events = [event(1), event(2), event(3)]
    counts = WorkMeter(counts_bytes=True)
    plain = WorkMeter()
    for meter in (counts, plain):
        meter.handled(events, events[2:])

    assert counts.work_at(0) == WorkDone(busy=0.0, events=2, bytes=6)
    assert plain.work_at(0) == WorkDone(busy=0.0, events=2, bytes=0)
