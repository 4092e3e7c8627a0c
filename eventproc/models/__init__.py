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

__all__ = [
    "COMPLETED_RANGES_MAX",
    "EVENT_FIELDS",
    "NO_OFFSET",
    "RECORD_BYTES_MAX",
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
    "WriteOutcome",
    "body_bytes",
    "check_state",
    "describe_error",
    "joined",
]
