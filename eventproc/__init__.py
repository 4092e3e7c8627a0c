"""Process partitioned event streams with a group of equal processes.

Users import from here, from the packages in ``eventproc.sources`` (such as
``eventproc.sources.eventhubs``), from ``eventproc.testing`` and from ``checkpointstores``.

``import eventproc`` takes a few milliseconds: a name is imported when it is first used. The command
needs this, to be ready for signals early.
"""

import importlib
import typing

if typing.TYPE_CHECKING:  # For type checkers, editors and the documentation; `__getattr__` below.
    from eventproc._base.network import HttpProxy
    from eventproc._base.retries import Backoff
    from eventproc._base.version import __version__
    from eventproc._delivery.config import (
        CheckpointPolicy,
        EventProcessorConfig,
        FailureAction,
        FailurePolicy,
        RecreatedHub,
        partition_key_of,
    )
    from eventproc._delivery.handler import (
        BatchError,
        BlockingPartitionContext,
        BlockingPartitionHandler,
        PartitionContext,
        PartitionHandler,
        RowError,
    )
    from eventproc._group.resources.config import ResourceProcessorConfig
    from eventproc._group.resources.handler import (
        BlockingHeldResource,
        BlockingResourceHandler,
        HeldResource,
        ResourceHandler,
    )
    from eventproc._group.resources.names import Resources
    from eventproc._runtime.processors import EventProcessor, ResourceProcessor
    from eventproc.errors import (
        ConfigurationError,
        DeadLetterError,
        DuplicateOwnerError,
        EventProcError,
        HandlerAbortedError,
        HandlerCancelledError,
        HubRecreatedError,
        MissingExtraError,
        OwnershipLostError,
        PositionLostError,
        ReceiverDisplacedError,
        RosterUnavailableError,
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
    from eventproc.models import (
        Checkpoint,
        CloseReason,
        ConsumerGroup,
        DeadLetter,
        EventPosition,
        LoadBalancingStrategy,
        PartitionOwnership,
        ReceivedEvent,
    )
    from eventproc.models._statistics import (
        DeliveryCounters,
        HoldCounters,
        ProcessorStatistics,
        PumpStatistics,
        ResourceProcessorStatistics,
        ResourceStatistics,
    )
    from eventproc.placements import (
        ByLoad,
        Even,
        GroupState,
        MemberFacts,
        Ordinal,
        Placement,
        Published,
        Ring,
        Weighted,
    )
    from eventproc.ports import (
        CheckpointStore,
        DeadLetterSink,
        EventSource,
        PartitionReceiver,
        Roster,
    )
    from eventproc.rosters import FixedRoster

__all__ = [
    "Backoff",
    "BatchError",
    "BlockingHeldResource",
    "BlockingPartitionContext",
    "BlockingPartitionHandler",
    "BlockingResourceHandler",
    "ByLoad",
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
    "Even",
    "EventPosition",
    "EventProcError",
    "EventProcessor",
    "EventProcessorConfig",
    "EventSource",
    "FailureAction",
    "FailurePolicy",
    "FixedRoster",
    "GroupState",
    "HandlerAbortedError",
    "HandlerCancelledError",
    "HeldResource",
    "HoldCounters",
    "HttpProxy",
    "HubRecreatedError",
    "LoadBalancingStrategy",
    "MemberFacts",
    "MissingExtraError",
    "Ordinal",
    "OwnershipLostError",
    "PartitionContext",
    "PartitionHandler",
    "PartitionOwnership",
    "PartitionReceiver",
    "Placement",
    "PositionLostError",
    "ProcessorStatistics",
    "Published",
    "PumpStatistics",
    "ReceivedEvent",
    "ReceiverDisplacedError",
    "RecreatedHub",
    "ResourceHandler",
    "ResourceProcessor",
    "ResourceProcessorConfig",
    "ResourceProcessorStatistics",
    "ResourceStatistics",
    "Resources",
    "Ring",
    "Roster",
    "RosterUnavailableError",
    "RowError",
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
    "Weighted",
    "__version__",
    "partition_key_of",
]

_MODULES = (
    *("_base.version", "errors", "models", "ports", "placements", "_base.retries"),
    *("_base.network", "_group.resources.handler", "_group.resources.names"),
    *("_group.resources.config", "_delivery.config", "_delivery.handler", "rosters"),
    "_runtime.processors",
)
"""The modules of these names, searched in this order: each imports more than the one before."""

if not typing.TYPE_CHECKING:  # Type checkers would take any name for one that exists.

    def __getattr__(name: str) -> object:
        """Import a name when it is first used."""
        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        if name in __all__:
            for below in _MODULES:
                module = importlib.import_module(f"{__name__}.{below}")
                if hasattr(module, name):
                    return globals().setdefault(name, getattr(module, name))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        """Return the names of the module, those included that are not imported yet."""
        return sorted({*globals(), *__all__})
