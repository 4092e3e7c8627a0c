"""The interfaces to stores, sources, publishers, dead letters, rosters and health reporters.

Adapters translate the exceptions of client libraries into the errors of ``eventproc.errors``. The
values that they take and return are imported from ``eventproc.models``.

What follows is asked of a source. ``examples/own_source.py`` is a complete one, and
``eventproc.testing.check_event_source`` checks any. Each processor has a source object of its own.

Order of calls: the constructor checks its arguments and does not connect. A processor calls
``set_expiration`` (queues only), ``open``, ``check_consumer_group``, and then ``partition_ids`` now
and then. For each partition that it owns it calls ``open_receiver``, then ``receive`` again and
again. When it has lost or handed over the partition it closes the receiver (a queue's after
``stop``), and opens another one after an error, or when it owns the partition again. Last comes
``close``. A closed source may be opened again, also on another event loop.

Tasks: all calls come from the event loop that opened the source, so they must not block it. Calls
of a source may be under way at the same time, one for each partition; a receiver is called by one
task at a time. Any call may be cancelled, and must then leave the object usable. Each call except
``receive`` ends by itself if the service does not answer: with ``SourceUnavailableError``, after a
time-out of the source's own.

Errors: only those of ``eventproc.errors``, with a message that says what was asked of which service
and what it answered. Any other exception counts as a fault of the program: in a call for one
partition it ends the service of that partition, which begins anew after a back-off, and elsewhere
it ends the processor.

- ``SourceUnavailableError``: no answer, or a broken link. It is tried again, with a back-off.
- ``SuspectSettingError``: the same, but probably a setting is wrong, such as an unknown host. While
  a processor starts, it ends the start.
- ``SourceRejectedError``: repeating will not help. A partition is given up after five in a row.
- ``PositionLostError``: the end of the partition fell below the position, so events that were
  received are gone. It counts as a hub that was created again.
- ``ReceiverDisplacedError``: another receiver took the link. The lease is looked at, then the link
  is opened again.
- ``ConfigurationError``: only from the constructor, ``open`` and ``check_consumer_group``.

Values:

- Namespace and hub are names as ``ConsumerGroup`` takes them: printable, without a slash, a
  backslash and surrounding blanks. Upper and lower case are the same.
- A partition id is a text that stays the same for the life of the partition; ids are added at the
  end.
- ``sequence_number`` is an integer of 0 or more that rises from event to event in a partition, and
  is 0 for the first event, or above. -1 means: before the first event. A number is never used
  again, also if all events were deleted. Number events one by one: the lag counts the numbers of a
  gap, too.
- ``offset`` is a text that names the event to the service. It is stored in checkpoints, together
  with the number, and handed in again as a position, perhaps after months. ``"-1"`` is the one
  before the first event. Only Kafka's begin with ``kafka:``, and those of queues with ``queue:``.
- Times are ``datetime`` with a time zone, by the service's clock; durations are ``timedelta``.
"""

from eventproc._base import public_names as _public_names
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
    Gathering,
    PartitionReceiver,
    QueueReceiver,
    QueueSource,
)
from eventproc.ports._health import HealthReporter, WatchedMember
from eventproc.ports._roster import Roster

__all__ = [
    "CheckpointStore",
    "DeadLetterReader",
    "DeadLetterSink",
    "EventPublisher",
    "EventSource",
    "ForwardingStore",
    "Gathering",
    "HealthReporter",
    "PartitionReceiver",
    "QueueReceiver",
    "QueueSource",
    "Roster",
    "Transaction",
    "Transactions",
    "WatchedMember",
]

_public_names.set_module(__name__, globals())
