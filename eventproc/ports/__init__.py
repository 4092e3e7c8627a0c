"""The interfaces to stores, sources, publishers, dead letters, rosters and health reporters.

Adapters translate the exceptions of client libraries into the errors of ``eventproc.errors``.
"""

from eventproc.ports.checkpoint_store import CheckpointStore, ForwardingStore
from eventproc.ports.dead_letter_reader import DeadLetterReader
from eventproc.ports.dead_letter_sink import DeadLetterSink
from eventproc.ports.event_publisher import EventPublisher
from eventproc.ports.event_source import (
    EventSource,
    PartitionReceiver,
    QueueReceiver,
    QueueSource,
)
from eventproc.ports.health_reporter import HealthReporter, WatchedMember
from eventproc.ports.roster import Roster
from eventproc.ports.transactions import Transaction, Transactions

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
