"""Process partitioned event streams with a group of equal processes.

Users import from here, from ``eventproc.sources.eventhubs`` or ``eventproc.sources.kafka``,
``eventproc.testing`` and ``checkpointstores``.
"""

from eventproc.config import (
    Backoff,
    CheckpointPolicy,
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
)
from eventproc.errors import (
    ConfigurationError,
    DeadLetterError,
    DuplicateOwnerError,
    EventProcError,
    HandlerCancelledError,
    OwnershipLostError,
    ReceiverDisplacedError,
    SourceError,
    SourceRejectedError,
    SourceUnavailableError,
    StateRefusedError,
    StateTooLargeError,
    StateUnreadableError,
    StoreCorruptError,
    StoreError,
    StoreRejectedError,
    StoreReplacedError,
    StoreUnavailableError,
)
from eventproc.handler import (
    BatchError,
    BlockingPartitionContext,
    BlockingPartitionHandler,
    PartitionContext,
    PartitionHandler,
)
from eventproc.models import (
    Checkpoint,
    CloseReason,
    ConsumerGroup,
    DeadLetter,
    EventPosition,
    LeaseMode,
    LoadBalancingStrategy,
    PartitionOwnership,
    ReceivedEvent,
)
from eventproc.ports import CheckpointStore, DeadLetterSink, EventSource, PartitionReceiver
from eventproc.processor import EventProcessor
from eventproc.statistics import DeliveryCounters, ProcessorStatistics, PumpStatistics
from eventproc.version import __version__

__all__ = [
    "Backoff",
    "BatchError",
    "BlockingPartitionContext",
    "BlockingPartitionHandler",
    "Checkpoint",
    "CheckpointPolicy",
    "CheckpointStore",
    "CloseReason",
    "ConfigurationError",
    "ConsumerGroup",
    "DeadLetter",
    "DeadLetterError",
    "DeadLetterSink",
    "DeliveryCounters",
    "DuplicateOwnerError",
    "EventPosition",
    "EventProcError",
    "EventProcessor",
    "EventProcessorConfig",
    "EventSource",
    "FailureAction",
    "FailurePolicy",
    "HandlerCancelledError",
    "LeaseMode",
    "LoadBalancingStrategy",
    "OwnershipLostError",
    "PartitionContext",
    "PartitionHandler",
    "PartitionOwnership",
    "PartitionReceiver",
    "ProcessorStatistics",
    "PumpStatistics",
    "ReceivedEvent",
    "ReceiverDisplacedError",
    "SourceError",
    "SourceRejectedError",
    "SourceUnavailableError",
    "StateRefusedError",
    "StateTooLargeError",
    "StateUnreadableError",
    "StoreCorruptError",
    "StoreError",
    "StoreRejectedError",
    "StoreReplacedError",
    "StoreUnavailableError",
    "__version__",
]
