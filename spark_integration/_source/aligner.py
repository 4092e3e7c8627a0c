"""Ends batches at one enqueued time in all partitions, which it finds by requests to the hub."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from eventproc.errors import ConfigurationError
from eventproc.models import EventPosition
from spark_integration._source.alignment import AlignmentSearch, Backlog, TimeCut
from spark_integration._source.hub import Hub
from spark_integration._source.planning import Offsets, PartitionSpan, begins_of

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


class Aligner:
    """Shortens spans so that they end at one enqueued time. Reuses answers from batch to batch."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._known: dict[str, tuple[TimeCut, ...]] = {}

    def cut(
        self, start: Offsets, spans: Mapping[str, PartitionSpan], events_max: int
    ) -> Mapping[str, PartitionSpan]:
        """Shorten the spans so that all end at one instant and have at most ``events_max`` events.

        If they have no more than that already, they are returned unchanged, without asking the
        hub. If more events than that were enqueued in one millisecond, the limit is exceeded.

        Raises:
            SourceUnavailableError: the hub did not answer.
            ConfigurationError: the source does not know when the newest events were enqueued.
        """
        begins = begins_of(start, spans)
        waiting = {p: span for p, span in spans.items() if span.next > begins[p]}
        if sum(span.next - begins[p] for p, span in waiting.items()) <= events_max:
            return spans
        search = AlignmentSearch.begin(self._backlogs(begins, waiting), events_max)
        while (instant_ms := search.guess()) is not None:
            at = EventPosition.from_enqueued_time(_EPOCH + instant_ms * _MILLISECOND)
            search = search.learn(
                instant_ms, self._look_up(dict.fromkeys(search.unknown(instant_ms), at))
            )
        for partition_id, backlog in search.backlogs.items():
            self._known[partition_id] = backlog.cuts
        ends = search.ends()
        return {
            p: PartitionSpan(first=span.first, next=ends[p]) if p in ends else span
            for p, span in spans.items()
        }

    def _backlogs(
        self, begins: Mapping[str, int], waiting: Mapping[str, PartitionSpan]
    ) -> dict[str, Backlog]:
        known = {
            p: {cut for cut in self._known.get(p, ()) if begins[p] <= cut.number < span.next}
            for p, span in waiting.items()
        }
        unknown = [p for p, cuts in known.items() if begins[p] not in {cut.number for cut in cuts}]
        firsts = {
            p: EventPosition.from_sequence_number(begins[p], is_inclusive=True) for p in unknown
        }
        for p, first in self._look_up(firsts).items():
            # If retention has deleted the event, use the time of the next one.
            known[p].add(first._replace(number=begins[p]))
        return {
            p: Backlog.of(known[p], begin=begins[p], end=span.next, newest_ms=_newest_ms(p, span))
            for p, span in waiting.items()
        }

    def _look_up(self, positions: Mapping[str, EventPosition]) -> dict[str, TimeCut]:
        events = self._hub.first_events_now(positions) if positions else {}
        return {
            p: TimeCut(_milliseconds(event.enqueued_time), event.sequence_number)
            for p, event in events.items()
        }


def _newest_ms(partition_id: str, span: PartitionSpan) -> int:
    if span.last_enqueued_time is None:
        raise ConfigurationError(
            f"the source does not say when the newest event of partition {partition_id!r} was "
            "enqueued: leave alignBy at backlog"
        )
    return _milliseconds(span.last_enqueued_time)


def _milliseconds(instant: datetime) -> int:
    return (instant - _EPOCH) // _MILLISECOND
