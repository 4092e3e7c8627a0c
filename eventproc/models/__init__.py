"""The records that modules exchange: frozen dataclasses and enums, all importable from here."""

from eventproc.models.batch import EventBatch, body_bytes, joined
from eventproc.models.checkpoint import (
    COMPLETED_RANGES_MAX,
    NO_OFFSET,
    SEQUENCE_NUMBER_MAX,
    STATE_BYTES_MAX,
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    OffsetFormat,
    SequenceRange,
    WriteOutcome,
    check_state,
)
from eventproc.models.dead_letter import TEXT_MAX, DeadLetter, describe_error
from eventproc.models.events import (
    EVENT_FIELDS,
    REPLAYED_FROM,
    REPLAYED_FROM_PROPERTY,
    EventPosition,
    LastEnqueued,
    PartitionProperties,
    ReceivedEvent,
)
from eventproc.models.group_record import (
    RECORD_BYTES_MAX,
    GroupRecord,
    RecordResult,
)
from eventproc.models.membership import (
    LeaseMode,
    Member,
    MemberResult,
    MembershipSnapshot,
    MemberStatus,
)
from eventproc.models.outgoing_event import OutgoingEvent, PropertyValue
from eventproc.models.ownership import (
    ClaimResult,
    CloseReason,
    ConsumerGroup,
    LoadBalancingStrategy,
    OwnershipClaim,
    OwnershipSnapshot,
    PartitionOwnership,
)
from eventproc.models.stored_letter import (
    StoredLetter,
    in_order,
    letter_from_details,
    letter_from_json,
)

__all__ = [
    "COMPLETED_RANGES_MAX",
    "EVENT_FIELDS",
    "NO_OFFSET",
    "RECORD_BYTES_MAX",
    "REPLAYED_FROM",
    "REPLAYED_FROM_PROPERTY",
    "SEQUENCE_NUMBER_MAX",
    "STATE_BYTES_MAX",
    "TEXT_MAX",
    "Checkpoint",
    "CheckpointResult",
    "CheckpointUpdate",
    "ClaimResult",
    "CloseReason",
    "ConsumerGroup",
    "DeadLetter",
    "EventBatch",
    "EventPosition",
    "GroupRecord",
    "LastEnqueued",
    "LeaseMode",
    "LoadBalancingStrategy",
    "Member",
    "MemberResult",
    "MemberStatus",
    "MembershipSnapshot",
    "OffsetFormat",
    "OutgoingEvent",
    "OwnershipClaim",
    "OwnershipSnapshot",
    "PartitionOwnership",
    "PartitionProperties",
    "PropertyValue",
    "ReceivedEvent",
    "RecordResult",
    "SequenceRange",
    "StoredLetter",
    "WriteOutcome",
    "body_bytes",
    "check_state",
    "describe_error",
    "in_order",
    "joined",
    "letter_from_details",
    "letter_from_json",
]
