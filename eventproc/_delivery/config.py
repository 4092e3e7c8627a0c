"""The settings of an ``EventProcessor``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from typing import Annotated, Final, TypeAlias

from eventproc._base.retries import Backoff
from eventproc._base.settings import Count, PositiveSpan, Wanted, Within, check_settings, value_text
from eventproc._group.config import GroupConfig
from eventproc.errors import ConfigurationError
from eventproc.models import COMPLETED_RANGES_MAX, EventPosition, ReceivedEvent
from eventproc.ports._event_source import AT_ONCE, FOR_COLUMNS, Gathering

IN_FLIGHT_EVENTS_MAX: Final = 2 * COMPLETED_RANGES_MAX
"""At most half of this many events are separate completed ranges: a checkpoint can hold them."""

Rate: TypeAlias = Annotated[float, Within(above=0), Wanted("a positive number of events a second")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPolicy:
    """When checkpoints are written automatically: after ``max_events`` or ``interval``.

    The first of the two that is reached counts. Progress is also stored when a partition is drained
    and by ``context.checkpoint()``; if both are ``None``, only then.
    """

    __module__ = "eventproc"

    max_events: Count | None = 1000
    """After this many handled events. Handling continues while it is written."""

    interval: PositiveSpan | None = timedelta(seconds=5)
    """When the oldest handled event without a checkpoint is this old."""

    max_uncommitted_events: Count | None = 100_000
    """While the store is slow or fails, handling continues until this many handled events have no
    checkpoint; then it waits for the store, because all of them would be delivered again after a
    crash. The default is a hundred times ``max_events``, so a healthy store causes no wait; with
    fewer than what is handled during a write, each write costs a fast handler time. ``None``, or no
    automatic checkpoints: no limit."""

    def __post_init__(self) -> None:
        """Refuse values that are out of bounds."""
        check_settings(self)

    @classmethod
    def manual(cls) -> "CheckpointPolicy":
        """Write only on ``context.checkpoint()`` and when a partition is drained."""
        return cls(max_events=None, interval=None, max_uncommitted_events=None)

    def within(self, unsettled_max: int) -> "CheckpointPolicy":
        """Return the policy for a queue that delivers at most this many unsettled events.

        It waits for checkpoints. So one is written after half of these events at the latest, and
        after the default interval if none is set. Without automatic checkpoints the policy stays as
        it is: then the handler has to call ``context.checkpoint()``.
        """
        if self.max_events is None and self.interval is None:
            return self
        most = max(1, unsettled_max // 2)
        interval = self.interval or CheckpointPolicy().interval
        return replace(self, max_events=min(self.max_events or most, most), interval=interval)


class FailureAction(Enum):
    """What happens to an event that is given up."""

    __module__ = "eventproc"

    DEAD_LETTER = "dead_letter"
    """The event is stored with its error in the processor's ``dead_letters``, then skipped."""

    SKIP = "skip"
    """The event is counted, logged and skipped; its content is not kept."""

    STOP = "stop"
    """Nothing more is received from the event's partition until ``processor.resume(partition_id)``
    is called, or until another processor becomes its owner. The partition stays owned, so that it
    does not fail on one processor after the other."""


DELIVERIES_MIN: Final = 3
"""In the first delivery that kills the process an event may be among many, in the second among
fewer; only in the third it is alone."""

Deliveries: TypeAlias = Annotated[
    int,
    Within(least=DELIVERIES_MIN),
    Wanted(
        f"a whole number of {DELIVERIES_MIN} or more, because in the first ones the process may "
        "have died of another event of the same batch"
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailurePolicy:
    """When an event is given up, and what happens to it. By default no event is given up.

    The wait between attempts is ``EventProcessorConfig.handler_backoff``.
    """

    __module__ = "eventproc"

    attempts_max: Count | None = None
    """An event is given up after this many failed calls with this event alone, by one owner; a new
    owner starts at zero. ``None``: the event is retried without limit."""

    action: FailureAction = FailureAction.STOP
    """What happens to an event that is given up."""

    transient: tuple[type[Exception], ...] = ()
    """Errors that are not caused by an event, such as an unreachable database; they do not count
    for ``attempts_max``."""

    deliveries_max: Deliveries | None = None
    """An event is given up after this many deliveries in which the process died. The count is
    stored with the checkpoint, so it includes the deliveries by all owners. It costs one more write
    at each start and each end of a partition, and some after a crash (see docs/delivery.md).
    Kafka's share groups use 5. ``None``: deliveries are not counted."""

    def __post_init__(self) -> None:
        """Refuse values that are out of bounds."""
        check_settings(self)


class RecreatedHub(Enum):
    """What happens to a partition whose hub was deleted and created again under the same name.

    The same holds for a Kafka topic. The position of its checkpoint means nothing then:
    events of the new hub may have the same numbers.
    """

    __module__ = "eventproc"

    STOP = "stop"
    """The partition stays owned and is not served; it begins when an operator has moved its
    checkpoint (``eventproc checkpoints reset``)."""

    EARLIEST = "earliest"
    """The checkpoint and the handler's state are dropped, and the new hub is read from its first
    event."""


def partition_key_of(event: ReceivedEvent) -> str | None:
    """Return the event's partition key: the default ``key_selector``."""
    return event.partition_key


partition_key_of.__module__ = "eventproc"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventProcessorConfig(GroupConfig):
    """Every setting of an ``EventProcessor``.

    All processors of a group should have the same ``ownership_expiration``. In a group shared with
    processors of an Azure SDK it has to be longer than twice their longest renewal interval:
    ``docs/operations.md`` has a table.
    """

    __module__ = "eventproc"

    initial_position: EventPosition = field(default_factory=EventPosition.earliest)
    """Where to begin a partition that has no checkpoint."""

    initial_positions: Mapping[str, EventPosition] = field(default_factory=dict)
    """Where to begin single partitions that have no checkpoint, by partition id."""

    recreated_hub: RecreatedHub = RecreatedHub.STOP
    """What happens if the hub was deleted and created again since a checkpoint was written. It is
    reported by the log event ``hub_recreated`` in either case."""

    checkpoint_policy: CheckpointPolicy = field(default_factory=CheckpointPolicy)
    """When checkpoints are written automatically."""

    batch_size_max: Count = 300
    """The most events in one call of ``process_events``, and rows in one of ``process_columns``.

    For columns 10,000 is better: a call costs the same for one row and for many.
    """

    batch_min: Count | None = None
    """A call waits until it has this many events, but no longer than ``batch_wait``. ``None``: as
    many as ``batch_size_max``."""

    batch_wait: PositiveSpan | None = None
    """How long a call may wait for more events after its first one. A stop, a hand-over and a pause
    do not wait. ``None``: a call has what was received, and does not wait; a call of
    ``process_columns`` waits for 10 ms or 4,096 rows."""

    key_concurrency: Count = 1
    """How many calls of ``process_events`` may be under way at once in one partition, each with
    events of one key. 1: one call at a time, everything in order."""

    key_selector: Callable[[ReceivedEvent], str | bytes | None] = partition_key_of
    """Returns the key of an event, if ``key_concurrency`` is above 1: events with equal keys are
    handled in order. ``None`` is a key like any other. If no order is needed, return a different
    value for each event."""

    max_in_flight_events: Annotated[int, Within(least=1, most=IN_FLIGHT_EVENTS_MAX)] = 1000
    """With ``key_concurrency`` above 1: how many events may lie above the checkpoint's position,
    handled or not. At that number, nothing more is received from the partition."""

    failure_policy: FailurePolicy = field(default_factory=FailurePolicy)
    """When an event that fails is given up, and what happens to it."""

    partition_rate_max: Rate | None = None
    """The most events per second delivered to the handler of one partition; ``None``: no limit."""

    rate_max: Rate | None = None
    """The most events per second delivered in all partitions of this processor together; ``None``:
    no limit."""

    idle_timeout: PositiveSpan | None = None
    """``on_idle`` is called each time that no event was received for this long; ``None``: never."""

    stall_timeout: PositiveSpan | None = timedelta(minutes=5)
    """A partition that has work and completes none of it for this long is stalled: a warning is
    logged (``stall_detected``), and its receiver opened again if it returns no events although the
    hub has some. Five minutes as Kafka's ``max.poll.interval.ms``. ``None``: no check."""

    failover_timeout: PositiveSpan | None = None
    """If a partition has work and completes none of it for this long, its calls under way are
    cancelled, and it goes to another processor, if there is one. So no call of the handler may
    need that long. ``None``: it stays here."""

    receiver_backoff: Backoff = field(default_factory=lambda: Backoff(maximum=timedelta(seconds=5)))
    """The waits before a failed receiver is opened again, and before a failed checkpoint is written
    again. The maximum is low, so that work continues soon after an outage of the hub or store."""

    partition_ids_interval: PositiveSpan = timedelta(seconds=10)
    """Time between two reads of the hub's partition ids, because a hub may grow. Each read costs a
    connection to the hub."""

    def __post_init__(self) -> None:
        """Refuse settings that cannot work; each error names the remedy."""
        # ``super()`` without arguments does not work in a dataclass with slots.
        GroupConfig.__post_init__(self)
        if self.batch_min is not None and self.batch_wait is None:
            raise ConfigurationError(
                "the last events before a pause of the publishers would wait for ever. Give the "
                "longest time that they may wait",
                setting="batch_min",
                value=str(self.batch_min),
                beside={"batch_wait": "not given"},
            )
        if self.batch_min is not None and self.batch_min > self.batch_size_max:
            raise ConfigurationError(
                "give at most as many, because no call has more events than that",
                setting="batch_min",
                value=str(self.batch_min),
                beside={"batch_size_max": str(self.batch_size_max)},
            )
        if self.batch_wait is not None and self.key_concurrency > 1:
            raise ConfigurationError(
                "a lane takes the events of one key as soon as it is free. Leave the first out, or "
                "handle one key at a time",
                setting="batch_wait",
                value=value_text(self.batch_wait),
                beside={"key_concurrency": str(self.key_concurrency)},
            )

    def gathering(self, *, takes_columns: bool) -> Gathering:
        """How long a call waits for more events."""
        if self.batch_wait is None:
            return FOR_COLUMNS if takes_columns else AT_ONCE
        return Gathering(self.batch_min or self.batch_size_max, self.batch_wait)

    def position_without_checkpoint(self, partition_id: str) -> EventPosition:
        """Where to begin this partition if it has no checkpoint."""
        return self.initial_positions.get(partition_id, self.initial_position)
