"""Process partitioned event streams with a fleet of equal processes.

Users import from here, from ``eventproc.sources.eventhubs``, ``eventproc.testing`` and
``checkpointstores``.
"""

from eventproc.config import Backoff, CheckpointPolicy, EventProcessorConfig
from eventproc.errors import (
    ConfigurationError,
    DuplicateOwnerError,
    EventProcError,
    OwnershipLostError,
    ReceiverDisplacedError,
    SourceError,
    SourceRejectedError,
    SourceUnavailableError,
    StateTooLargeError,
    StoreCorruptError,
    StoreError,
    StoreUnavailableError,
)
from eventproc.handler import (
    BlockingPartitionContext,
    BlockingPartitionHandler,
    PartitionContext,
    PartitionHandler,
)
from eventproc.membership import LeaseMode
from eventproc.models import (
    Checkpoint,
    CloseReason,
    ConsumerGroup,
    EventPosition,
    LoadBalancingStrategy,
    PartitionOwnership,
    ReceivedEvent,
)
from eventproc.ports import CheckpointStore, EventSource, PartitionReceiver
from eventproc.processor import EventProcessor
from eventproc.statistics import ProcessorStatistics, PumpStatistics

__all__ = [
    "Backoff",
    "BlockingPartitionContext",
    "BlockingPartitionHandler",
    "Checkpoint",
    "CheckpointPolicy",
    "CheckpointStore",
    "CloseReason",
    "ConfigurationError",
    "ConsumerGroup",
    "DuplicateOwnerError",
    "EventPosition",
    "EventProcError",
    "EventProcessor",
    "EventProcessorConfig",
    "EventSource",
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
    "StateTooLargeError",
    "StoreCorruptError",
    "StoreError",
    "StoreUnavailableError",
]
