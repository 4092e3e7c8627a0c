"""The interfaces to checkpoint store, event source, dead-letter sink, roster and publisher.

Adapters translate the exceptions of client libraries into the errors of ``eventproc.errors``.
"""

from eventproc.ports.checkpoint_store import CheckpointStore, ForwardingStore
from eventproc.ports.dead_letter_sink import DeadLetterSink
from eventproc.ports.event_publisher import EventPublisher
from eventproc.ports.event_source import EventSource, PartitionReceiver
from eventproc.ports.roster import Roster
from eventproc.ports.transactions import Transaction, Transactions

__all__ = [
    "CheckpointStore",
    "DeadLetterSink",
    "EventPublisher",
    "EventSource",
    "ForwardingStore",
    "PartitionReceiver",
    "Roster",
    "Transaction",
    "Transactions",
]
