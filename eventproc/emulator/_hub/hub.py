"""Event hubs: partitions with their logs and receivers, and the namespace that holds them all.

Rule 1: everything here runs on one event loop, in the order of the calls. Events are in the log,
and on disk if a directory is configured, before any receiver is woken.
Rule 2: a receiver with an epoch is exclusive: it displaces all receivers with the same or a lower
epoch and all without one. The Azure SDKs' processors all use epoch 0, so the newest one reads.
Rule 3: a receiver with a lower epoch, or without one, is refused while one with an epoch reads.
Rule 4: without epochs, five receivers may read at a time.
"""

import struct
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Final, Protocol, TypeVar

from eventproc.emulator._amqp.message import EventDraft, StoredEvent
from eventproc.emulator._amqp.refusal import (
    RefusedError,
    entity_not_found,
    epoch_missing,
    epoch_taken_over,
    epoch_too_low,
    partition_invalid,
    too_many_receivers,
)
from eventproc.emulator._hub.configuration import (
    DEFAULT_CONSUMER_GROUP,
    PARTITIONS_MAX,
    EmulatorConfiguration,
    HubConfiguration,
)
from eventproc.emulator._hub.log import PartitionLog, Retention
from eventproc.emulator._hub.persistence import DirectoryLock, PartitionFile, partition_path
from eventproc.errors import ConfigurationError

RECEIVERS_MAX: Final = 5
"""The service's limit: https://learn.microsoft.com/azure/event-hubs/event-hubs-quotas"""


class Receiver(Protocol):
    """What the rules need to know of a receiver."""

    @property
    def epoch(self) -> int | None:
        """Its owner level, if it has one."""

    @property
    def receiver_name(self) -> str:
        """Its name in the service's messages."""


ReceiverT = TypeVar("ReceiverT", bound=Receiver)


def displaced_by(newcomer: Receiver, present: Sequence[ReceiverT]) -> list[ReceiverT]:
    """Return the connected receivers that ``newcomer`` displaces.

    Raises:
        RefusedError: The newcomer may not connect.
    """
    epochs = [(other.epoch, other) for other in present if other.epoch is not None]
    if newcomer.epoch is None:
        if epochs:
            raise epoch_missing(epochs[0][0])
        if len(present) >= RECEIVERS_MAX:
            raise too_many_receivers(RECEIVERS_MAX, [other.receiver_name for other in present])
        return []
    for epoch, other in epochs:
        if epoch > newcomer.epoch:
            raise epoch_too_low(newcomer.receiver_name, newcomer.epoch, other.receiver_name, epoch)
    return list(present)


Clock = Callable[[], int]
"""Milliseconds since 1970."""


def system_clock() -> int:
    """Return this machine's time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class PartitionReceiver(Receiver, Protocol):
    """A link that delivers a partition's events to a client."""

    def wake(self, *, at_once: bool = False) -> None:
        """Send new events from the log."""

    def refuse(self, reason: RefusedError) -> None:
        """End the link with a reason."""


class Uncaptured:
    """Events that wait to be captured."""

    def __init__(self, events: Sequence[StoredEvent]) -> None:
        self.events = list(events)
        self.byte_count = sum(len(event.payload) for event in events)

    def add(self, events: Sequence[StoredEvent]) -> None:
        """Add events that were published."""
        self.events += events
        self.byte_count += sum(len(event.payload) for event in events)

    def take(self) -> Sequence[StoredEvent]:
        """Return all events, and wait for none of them any more."""
        events, self.events, self.byte_count = self.events, [], 0
        return events

    def put_back(self, events: Sequence[StoredEvent]) -> None:
        """Let events wait that were taken; others may have come since."""
        later = self.take()
        self.add(events)
        self.add(later)


class Partition:
    """One partition: its log, its file if it has one, and its receivers."""

    def __init__(
        self,
        partition_id: str,
        *,
        clock: Clock,
        retention: Retention,
        is_compacted: bool = False,
        age: timedelta = timedelta(0),
        file: PartitionFile | None = None,
        is_captured: bool = False,
    ) -> None:
        self.partition_id = partition_id
        self._clock = clock
        self._retention = retention
        self._is_compacted = is_compacted
        self._file = file
        created_ms = clock() - age // timedelta(milliseconds=1)
        self.log = PartitionLog() if file is None else file.load(created_ms)
        self.created_ms = created_ms if file is None else file.created_ms
        self.receivers: dict[str, list[PartitionReceiver]] = {}
        self.uncaptured: Uncaptured | None = None
        if is_captured:
            kept = self.log.read(0, len(self.log), self.log.byte_count)
            self.uncaptured = Uncaptured(kept)
        self.expire()

    def publish(self, drafts: Sequence[EventDraft]) -> list[StoredEvent]:
        """Append events and wake the receivers.

        Raises:
            RefusedError: They could not be written to disk. The log is unchanged.
        """
        events = self.log.place(drafts, self._clock())
        if self._file is not None:
            try:
                self._file.append(events)
            except OSError as error:
                raise RefusedError("amqp:internal-error", f"Not written: {error}") from error
        self.log.append(events)
        if self.uncaptured is not None:
            self.uncaptured.add(events)
        self.expire()
        for receivers in self.receivers.values():
            for receiver in receivers:
                receiver.wake()
        return events

    def expire(self) -> None:
        """Drop events beyond the retention, and in a compacted hub those that are superseded."""
        before = self.log.byte_count
        dropped = self.log.expire(self._retention, self._clock())
        if self._is_compacted:
            dropped += self.log.compact()
        if dropped and self._file is not None:
            self._file.expired(before - self.log.byte_count, self.log)

    def drop_before(self, sequence_number: int) -> int:
        """Drop the events below ``sequence_number`` as if they had expired."""
        dropped = self.log.drop_before(sequence_number)
        if dropped and self._file is not None:
            self._file.rewrite(self.log)  # so that they are not back after a restart
        return dropped

    def admit(self, receiver: PartitionReceiver, consumer_group: str) -> None:
        """Register a receiver, and end those that it displaces.

        Raises:
            RefusedError: The rules of epochs refuse it.
        """
        group = consumer_group.casefold()
        present = self.receivers.setdefault(group, [])
        for other in displaced_by(receiver, present):
            present.remove(other)
            other.refuse(
                epoch_taken_over(
                    other.receiver_name, other.epoch, receiver.receiver_name, receiver.epoch
                )
            )
        present.append(receiver)

    def dismiss(self, receiver: PartitionReceiver) -> None:
        """Deregister a receiver whose link ended. Repeating is harmless."""
        for present in self.receivers.values():
            if receiver in present:
                present.remove(receiver)

    def recreate(self) -> None:
        """Delete every event, end the receivers, and begin at sequence number 0 again."""
        created_ms, log = self._clock(), PartitionLog()
        if self._file is not None:
            self._file.rewrite(log, created_ms=created_ms)
        self.created_ms, self.log = created_ms, log
        if self.uncaptured is not None:
            self.uncaptured.take()
        for receivers in self.receivers.values():
            for receiver in tuple(receivers):
                receiver.refuse(entity_not_found(f"partition {self.partition_id}"))
            receivers.clear()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class Hub:
    """One event hub."""

    def __init__(
        self,
        configuration: HubConfiguration,
        make_partition: Callable[[str], Partition],
    ) -> None:
        self.name = configuration.name
        self.consumer_groups = (DEFAULT_CONSUMER_GROUP, *configuration.consumer_groups)
        self._groups = {group.casefold() for group in self.consumer_groups}
        self._make_partition = make_partition
        self._round_robin = 0
        self.partitions: list[Partition] = []
        try:
            self.add_partitions(configuration.partition_count)
        except ConfigurationError:
            self.close()
            raise

    @property
    def created_ms(self) -> int:
        """When the hub was created, in milliseconds since 1970."""
        return self.partitions[0].created_ms

    def partition(self, partition_id: str) -> Partition:
        """Return a partition.

        Raises:
            RefusedError: The hub does not have it.
        """
        # int() accepts "01" and "٣"; a partition id must be exactly as the hub lists it.
        if partition_id.isascii() and partition_id.isdecimal() and len(partition_id) < 6:
            index = int(partition_id)
            if index < len(self.partitions) and self.partitions[index].partition_id == partition_id:
                return self.partitions[index]
        raise partition_invalid(len(self.partitions))

    def check_consumer_group(self, consumer_group: str, path: str) -> None:
        """Raise ``RefusedError`` for a group that the hub does not have."""
        if consumer_group.casefold() not in self._groups:
            raise entity_not_found(path)

    def partition_for(self, drafts: Sequence[EventDraft]) -> Partition:
        """Choose the partition of a message without one: by its key, else in turn.

        All events of a batch go to one partition.
        """
        key = drafts[0].partition_key if drafts else None
        if key is not None:
            return self.partitions[partition_of(key, len(self.partitions))]
        self._round_robin = (self._round_robin + 1) % len(self.partitions)
        return self.partitions[self._round_robin]

    def add_partitions(self, count: int) -> None:
        """Add partitions. As in the service, keys may then map to other partitions.

        Raises:
            ConfigurationError: The hub would have more partitions than allowed.
        """
        if len(self.partitions) + count > PARTITIONS_MAX:
            raise ConfigurationError(
                f"event hub {self.name!r} has {len(self.partitions)} partitions: with {count} more "
                f"it would have more than {PARTITIONS_MAX}"
            )
        for index in range(len(self.partitions), len(self.partitions) + count):
            self.partitions.append(self._make_partition(str(index)))

    def close(self) -> None:
        """Close every file."""
        for partition in self.partitions:
            partition.close()


class Namespace:
    """All hubs of one emulator. It outlives the server, so a restart keeps the logs."""

    def __init__(self, configuration: EmulatorConfiguration, clock: Clock = system_clock) -> None:
        self._configuration = configuration
        self._clock = clock
        directory = configuration.directory
        self._lock = None if directory is None else DirectoryLock(directory)
        self.hubs: dict[str, Hub] = {}
        try:
            for hub in configuration.hubs:
                self.hubs[hub.name.casefold()] = self._make_hub(hub)
        except ConfigurationError:
            self.close()
            raise

    def _make_hub(self, configuration: HubConfiguration) -> Hub:
        directory = self._configuration.directory
        if directory is not None:
            beyond = partition_path(
                directory, configuration.name, str(configuration.partition_count)
            )
            if beyond.exists():
                raise ConfigurationError(
                    f"event hub {configuration.name!r} had more than "
                    f"{configuration.partition_count} partitions when {directory} was written, "
                    "and a hub cannot shrink: configure as many, or take an empty directory"
                )
        return Hub(configuration, lambda index: self._make_partition(configuration, index))

    def _make_partition(self, hub: HubConfiguration, partition_id: str) -> Partition:
        directory = self._configuration.directory
        file = None
        if directory is not None:
            path = partition_path(directory, hub.name, partition_id)
            file = PartitionFile(path, sync=self._configuration.sync_to_disk)
        return Partition(
            partition_id,
            clock=self._clock,
            retention=self._configuration.retention,
            is_compacted=hub.is_compacted,
            age=self._configuration.hub_age,
            file=file,
            is_captured=self._configuration.capture is not None,
        )

    def hub(self, name: str, path: str | None = None) -> Hub:
        """Return a hub; the case of its name does not matter.

        Raises:
            RefusedError: It does not exist.
        """
        found = self.hubs.get(name.casefold())
        if found is None:
            raise entity_not_found(path or name)
        return found

    def expire(self) -> None:
        """Drop events beyond the retention in every partition."""
        for hub in self.hubs.values():
            for partition in hub.partitions:
                partition.expire()

    @property
    def ages(self) -> bool:
        """Whether events expire by age."""
        return self._configuration.retention.age_max is not None

    @property
    def shortest_wait(self) -> timedelta:
        """How often to check for events that are too old."""
        age_max = self._configuration.retention.age_max or timedelta(minutes=1)
        return min(max(age_max / 10, timedelta(milliseconds=50)), timedelta(minutes=1))

    def close(self) -> None:
        """Close every file and release the directory. Repeating is harmless."""
        for hub in self.hubs.values():
            hub.close()
        if self._lock is not None:
            self._lock.release()


_MASK: Final = 0xFFFFFFFF

_WORDS: Final = struct.Struct("<III")

_BLOCK: Final = 12


@lru_cache(maxsize=65_536)
def partition_of(key: str, partition_count: int) -> int:
    """Return the index of a key's partition, by the hash of the service and of Azure's producers.

    It is Bob Jenkins's lookup3 (``hashlittle2``, public domain) with both seeds zero, and the two
    halves folded to a signed 16-bit number: https://burtleburtle.net/bob/c/lookup3.c
    """
    first, second = _hash(key.encode())
    folded = (first ^ second) & 0xFFFF
    signed = folded - 0x10000 if folded & 0x8000 else folded
    # In C the remainder has the sign of the dividend; the service takes its absolute value.
    return abs(signed) % partition_count


def _rotated(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & _MASK


def _hash(data: bytes) -> tuple[int, int]:
    a = b = c = (0xDEADBEEF + len(data)) & _MASK
    at = 0
    while len(data) - at > _BLOCK:
        x, y, z = _WORDS.unpack_from(data, at)
        a, b, c = _mixed((a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK)
        at += _BLOCK
    tail = data[at:]
    if not tail:
        return c, b
    x, y, z = _WORDS.unpack(tail.ljust(_BLOCK, b"\x00"))
    return _finished((a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK)


def _mixed(a: int, b: int, c: int) -> tuple[int, int, int]:
    for bits in (4, 6, 8, 16, 19, 4):
        a = (a - c) & _MASK ^ _rotated(c, bits)
        c = (c + b) & _MASK
        a, b, c = b, c, a
    return a, b, c


def _finished(a: int, b: int, c: int) -> tuple[int, int]:
    for bits in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - _rotated(b, bits)) & _MASK
        a, b, c = b, c, a
    # Seven rotations of three names leave them one step ahead.
    return b, a
