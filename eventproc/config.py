"""How an ``EventProcessor`` behaves: one frozen value, checked when it is built."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Final

from eventproc.errors import ConfigurationError
from eventproc.membership import LeaseMode
from eventproc.models import (
    COMPLETED_RANGES_MAX,
    EventPosition,
    LoadBalancingStrategy,
    ReceivedEvent,
)

INTERVALS_PER_EXPIRATION_MIN: Final = 3
"""Azure's troubleshooting guides: the expiration at least three times the interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPolicy:
    """When progress is written on its own accord: whichever of the two comes first.

    It is always written when a partition is closed in good order. With both ``None`` only
    ``context.checkpoint()`` and the close write.
    """

    every_events: int | None = 1000
    """After this many handled events."""

    every: timedelta | None = timedelta(seconds=5)
    """When the oldest handled event that is not yet checkpointed is this old."""

    unwritten_events_max: int | None = 100_000
    """While the store fails, handling goes on until so many handled events are not checkpointed;
    then it waits for the store, for all of them would come again after a crash. A hundred times
    ``every_events``: a healthy store is never waited for. ``None``, and where nothing is written
    on its own accord: no limit."""

    def __post_init__(self) -> None:
        """Refuse a policy that would never or always write."""
        if self.unwritten_events_max is not None and self.unwritten_events_max < 1:
            raise ConfigurationError(
                f"unwritten_events_max is {self.unwritten_events_max}: give 1 or more"
            )
        if self.every_events is not None and self.every_events < 1:
            raise ConfigurationError(f"every_events is {self.every_events}: give 1 or more")
        if self.every is not None and self.every <= timedelta(0):
            raise ConfigurationError(f"every is {self.every}: give a positive time")

    @classmethod
    def manual(cls) -> "CheckpointPolicy":
        """Only ``context.checkpoint()`` and the close write."""
        return cls(every_events=None, every=None, unwritten_events_max=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Waits between attempts: ``first``, then doubled each time, up to ``most``."""

    first: timedelta = timedelta(milliseconds=100)
    most: timedelta = timedelta(seconds=30)

    def __post_init__(self) -> None:
        """Refuse waits that are not waits."""
        if not timedelta(0) < self.first <= self.most:
            raise ConfigurationError(
                f"backoff from {self.first} to {self.most}: the first wait must be positive and "
                "not above the last"
            )


class FailureAction(Enum):
    """What becomes of an event that failed as often as it may."""

    DEAD_LETTER = "dead_letter"
    """It is stored with its story in the processor's ``dead_letters``, then passed over."""

    SKIP = "skip"
    """It is passed over. It is counted and logged, nothing else is kept of it."""

    STOP = "stop"
    """Nothing more is received from its partition, which stays owned, so that no other processor
    fails on it, until ``processor.resume(partition_id)`` or until another processor gets it."""


DELIVERIES_MIN: Final = 3
"""The first unheard of delivery may have had many events, and so may the second have, where the
position was stored in between; the third has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailurePolicy:
    """When to give an event up, and what becomes of it. By default none is given up for errors.

    How long to wait between attempts is the configuration's ``handler_backoff``.
    """

    attempts_max: int | None = None
    """Failed calls for this event alone, by one owner, before it is given up; ``None``: for ever.
    A new owner counts anew."""

    then: FailureAction = FailureAction.STOP

    transient: tuple[type[Exception], ...] = ()
    """Errors that are no event's own fault, like a database that is away: never counted."""

    deliveries_max: int | None = None
    """How often an event may be delivered and nothing be heard of it again, because the process
    died, before it is given up. Kept with the checkpoint, so it counts over all processors; it
    costs one write more at each start of a partition. 5 is what Kafka's share groups take.
    ``None``: for ever, and nothing is counted."""

    def __post_init__(self) -> None:
        """Refuse counts that cannot be."""
        if self.attempts_max is not None and self.attempts_max < 1:
            raise ConfigurationError(f"attempts_max is {self.attempts_max}: give 1 or more")
        if self.deliveries_max is not None and self.deliveries_max < DELIVERIES_MIN:
            raise ConfigurationError(
                f"deliveries_max is {self.deliveries_max}: give {DELIVERIES_MIN} or more, because "
                "the first ones may have died of another event of the same batch"
            )


def partition_key_of(event: ReceivedEvent) -> str | None:
    """The key that events are kept in order by, unless told otherwise."""
    return event.partition_key


@dataclass(frozen=True, slots=True, kw_only=True)
class EventProcessorConfig:
    """Every setting of an ``EventProcessor``.

    All processors of a group should have the same ``ownership_expiration``. In a group shared
    with Azure's own processors, let it be at least their expiration: 180 s for Python and Java,
    120 s for .NET, 60 s for JavaScript and Go.
    """

    load_balancing_strategy: LoadBalancingStrategy = LoadBalancingStrategy.COOPERATIVE

    load_balancing_interval: timedelta = timedelta(seconds=10)
    """Between two looks at a group where nothing has to change; 10 s as in Java, JS and Go."""

    unsettled_interval: timedelta = timedelta(milliseconds=250)
    """Between two looks while something that concerns this processor still has to change."""

    ownership_expiration: timedelta = timedelta(seconds=60)
    """A record that was not written for this long belongs to a dead processor."""

    lease_mode: LeaseMode = LeaseMode.PARTITION
    """What is renewed: each ownership record, or one presence record for all of a processor's
    partitions. ``SESSION`` costs two storage operations for each processor and interval however
    many partitions there are, and cannot share a group with processors of other SDKs. All
    processors of a group must have the same."""

    handoff_timeout: timedelta = timedelta(seconds=30)
    """How long an owner may keep what the plan gives away before it is stolen."""

    shutdown_timeout: timedelta = timedelta(seconds=30)
    """The budget of ``stop()``, and of a handler to finish when its partition is handed over."""

    leaving_notice: timedelta | None = None
    """How long ``stop()`` serves on after it told the group that it leaves, so that the others
    look often by the time they get its partitions, which are then without an owner's
    attention for an ``unsettled_interval`` and not for a ``load_balancing_interval``. ``None``: as
    long as the others may take to notice, and at most a third of ``shutdown_timeout``. Nobody is
    waited for where nobody else is there."""

    generation: str = ""
    """Which deployment this processor belongs to: a version, an image tag. One that starts while
    others of another generation are there waits in reserve until one of them goes, and takes over
    what that one had: so a rolling deploy moves each partition once. Empty: it takes its share at
    once, whoever is there."""

    reserve_patience: timedelta = timedelta(minutes=5)
    """How long to wait in reserve; then a processor takes its share in any case, as a canary
    should."""

    keeps_ownership_on_stop: bool = False
    """Whether ``stop()`` leaves the partitions to this processor's next start under the same
    ``owner_id``, so that a restart moves nothing. They are not served in between; who does not
    come back within ``ownership_expiration`` is replaced. Needs an ``owner_id``."""

    initial_position: EventPosition = field(default_factory=EventPosition.earliest)
    """Where to begin a partition that has no checkpoint."""

    initial_positions: Mapping[str, EventPosition] = field(default_factory=dict)
    """The same for single partitions, by partition id."""

    checkpoint_policy: CheckpointPolicy = field(default_factory=CheckpointPolicy)

    batch_size_max: int = 300
    """Most events in one call of ``process_events``."""

    key_lanes: int = 1
    """How many calls of ``process_events`` may be under way at once in one partition, each with
    events of one key. 1: one call at a time, everything in order."""

    key_of: Callable[[ReceivedEvent], str | bytes | None] = partition_key_of
    """What must stay in order among itself where ``key_lanes`` is above 1: events for which this
    returns the same. That holds for ``None`` as well: events without a key are one key. For no
    order at all return something that is different for each event."""

    lane_window: int = 1000
    """With key lanes: how many events may lie above the checkpoint's position, handled or not.
    When it is full, nothing more is received from this partition."""

    failure_policy: FailurePolicy = field(default_factory=FailurePolicy)

    handler_backoff: Backoff = field(default_factory=Backoff)
    """Between attempts at a batch that the handler failed."""

    partition_rate_max: float | None = None
    """Most events a second handed to the handler of one partition; ``None``: no limit."""

    rate_max: float | None = None
    """The same for all partitions of this processor together."""

    idle_after: timedelta | None = None
    """Call ``process_idle`` each time that nothing came for this long; ``None``: never."""

    stall_timeout: timedelta | None = None
    """When a partition with work gets nothing done for this long, say so and open its receiver
    again; after as long once more, give it up. One call of the handler that lasts this long is
    cut off, and the partition given up at once. ``None``: wait for ever."""

    receiver_backoff: Backoff = field(default_factory=lambda: Backoff(most=timedelta(seconds=5)))
    """Between attempts to open a receiver that broke, and to store progress. Capped low: when the
    hub or the store is back, nobody should sit out a long wait."""

    partition_ids_interval: timedelta = timedelta(seconds=10)
    """Between two questions whether the hub has grown. Each costs a connection to the hub."""

    uses_store_thread: bool = True
    """Whether the store and the renewals have a thread of their own, so that a handler that blocks
    the event loop cannot delay them. Off only where time is virtual."""

    def __post_init__(self) -> None:
        """Refuse, with the remedy, what cannot work."""
        for name in (
            "load_balancing_interval",
            "unsettled_interval",
            "ownership_expiration",
            "handoff_timeout",
            "partition_ids_interval",
            "shutdown_timeout",
            "reserve_patience",
            "idle_after",
            "stall_timeout",
        ):
            span = getattr(self, name)
            if span is not None and span <= timedelta(0):
                raise ConfigurationError(f"{name} is {getattr(self, name)}: give a positive time")
        least = INTERVALS_PER_EXPIRATION_MIN * self.load_balancing_interval
        if self.ownership_expiration < least:
            raise ConfigurationError(
                f"ownership_expiration ({self.ownership_expiration}) must be at least "
                f"{INTERVALS_PER_EXPIRATION_MIN} times load_balancing_interval "
                f"({self.load_balancing_interval}), that is {least}: a processor that misses one "
                "look must not seem dead"
            )
        if self.unsettled_interval > self.load_balancing_interval:
            raise ConfigurationError(
                f"unsettled_interval ({self.unsettled_interval}) must not be above "
                f"load_balancing_interval ({self.load_balancing_interval})"
            )
        for name in ("batch_size_max", "key_lanes", "lane_window"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"{name} is {getattr(self, name)}: give 1 or more")
        if self.lane_window > 2 * COMPLETED_RANGES_MAX:
            raise ConfigurationError(
                f"lane_window is {self.lane_window}: give {2 * COMPLETED_RANGES_MAX} or less, for "
                "a checkpoint must be able to tell what is handled in it"
            )
        for name in ("partition_rate_max", "rate_max"):
            rate = getattr(self, name)
            if rate is not None and not 0 < rate < float("inf"):
                raise ConfigurationError(
                    f"{name} is {rate}: give a positive number of events a second, None for no "
                    "limit, or pause"
                )

    def position_without_checkpoint(self, partition_id: str) -> EventPosition:
        """Where to begin this partition if it has no checkpoint."""
        return self.initial_positions.get(partition_id, self.initial_position)
