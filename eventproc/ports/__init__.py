"""The interfaces to stores, sources, publishers, dead letters, rosters and health reporters.

Adapters translate the exceptions of client libraries into the errors of ``eventproc.errors``.
"""

from eventproc._base import public as _public
from eventproc.ports._checkpoint_store import (
    CheckpointStore,
    ForwardingStore,
    Transaction,
    Transactions,
)
from eventproc.ports._dead_letters import DeadLetterReader, DeadLetterSink
from eventproc.ports._event_source import (
    EventPublisher,
    EventSource,
    PartitionReceiver,
    QueueReceiver,
    QueueSource,
)
from eventproc.ports._members import HealthReporter, Roster, WatchedMember

__all__ = [
    "CheckpointStore",
    "DeadLetterReader",
    "DeadLetterSink",
    "EventPublisher",
    "EventSource",
    "ForwardingStore",
    "HealthReporter",
    "PartitionReceiver",
    "QueueReceiver",
    "QueueSource",
    "Roster",
    "Transaction",
    "Transactions",
    "WatchedMember",
]

_public.set_module(__name__, globals())
