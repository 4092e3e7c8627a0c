"""Read what Event Hubs adds to an AMQP message: an event's position, and the newest event."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from eventproc.errors import SourceRejectedError
from eventproc.models import LastEnqueued
from eventproc.sources._amqp.fields import to_text, to_time

SEQUENCE_NUMBER: Final = b"x-opt-sequence-number"
OFFSET: Final = b"x-opt-offset"
ENQUEUED_TIME: Final = b"x-opt-enqueued-time"
PARTITION_KEY: Final = b"x-opt-partition-key"


class HubAnswer(NamedTuple):
    """The service's answer about a hub."""

    partition_ids: tuple[str, ...]
    created_at: datetime | None


def to_hub_answer(answer: Mapping[bytes, Any]) -> HubAnswer:
    """Return the service's answer about a hub; raises any error if it has another form."""
    created_ms = answer.get(b"created_at")
    return HubAnswer(
        tuple(to_text(partition_id) or "" for partition_id in answer[b"partition_ids"]),
        None if created_ms is None else to_time(int(created_ms)),
    )


def checked_position(
    sequence_number: object, offset: object, enqueued_ms: object
) -> tuple[int, str, int]:
    """Return the three values after a check of their types.

    Raises:
        SourceRejectedError: one is missing or has another type.
    """
    text = to_text(offset)
    if not (isinstance(sequence_number, int) and text and isinstance(enqueued_ms, int)):
        raise SourceRejectedError(
            "an event has no sequence number, offset or enqueued time: the server is not an event "
            "hub"
        )
    return sequence_number, text, enqueued_ms


def to_last_enqueued(annotations: Mapping[bytes, object] | None) -> LastEnqueued | None:
    """Return the newest event of the partition according to a message's delivery annotations."""
    if not annotations:
        return None
    sequence_number = annotations.get(b"last_enqueued_sequence_number")
    enqueued_ms = annotations.get(b"last_enqueued_time_utc")
    if not isinstance(sequence_number, int):
        return None
    return LastEnqueued(
        sequence_number=sequence_number,
        offset=to_text(annotations.get(b"last_enqueued_offset")) or "",
        enqueued_time=(to_time(enqueued_ms) if isinstance(enqueued_ms, int) else None),
    )
