"""Event hubs: partitions with their logs and receivers, and the namespace that holds them all.

Rule: everything here happens on one event loop, in the order in which it is called. What is
published is in the log, and on disk if there is one, before any receiver hears of it.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Protocol

from eventproc.emulator.configuration import (
    DEFAULT_CONSUMER_GROUP,
    EmulatorConfiguration,
    HubConfiguration,
)
from eventproc.emulator.directory_lock import DirectoryLock
from eventproc.emulator.log import PartitionLog, Retention
from eventproc.emulator.message import EventDraft, StoredEvent
from eventproc.emulator.partition_key import partition_of
from eventproc.emulator.persistence import PartitionFile, partition_path
from eventproc.emulator.receivers import displaced_by
from eventproc.emulator.refusal import (
    RefusedError,
    entity_not_found,
    epoch_taken_over,
    partition_invalid,
)
from eventproc.errors import ConfigurationError

Clock = Callable[[], int]
"""Milliseconds since 1970."""


def system_clock() -> int:
    """The time of this machine."""
    return time.time_ns() // 1_000_000


class PartitionReceiver(Protocol):
    """A link that delivers a partition's events to a client."""

    @property
    def epoch(self) -> int | None:
        """Its owner level, if it has one."""

    @property
    def receiver_name(self) -> str:
        """What the service's sentences call it."""

    def wake(self, *, at_once: bool = False) -> None:
        """There is something new in the log."""

    def refuse(self, reason: RefusedError) -> None:
        """End the link, and say why."""


class Partition:
    """One partition: its log, its file if it has one, and who reads it."""

    def __init__(
        self,
        partition_id: str,
        *,
        clock: Clock,
        retention: Retention,
        file: PartitionFile | None = None,
    ) -> None:
        self.partition_id = partition_id
        self._clock = clock
        self._retention = retention
        self._file = file
        self.log = PartitionLog() if file is None else file.load(clock())
        self.created_ms = clock() if file is None else file.created_ms
        self.receivers: dict[str, list[PartitionReceiver]] = {}
        self.expire()

    def publish(self, drafts: Sequence[EventDraft]) -> list[StoredEvent]:
        """Append events and wake the receivers.

        Raises:
            RefusedError: They could not be written to disk, and are not in the log.
        """
        events = self.log.place(drafts, self._clock())
        if self._file is not None:
            try:
                self._file.append(events)
            except OSError as error:
                raise RefusedError("amqp:internal-error", f"Not written: {error}") from error
        self.log.append(events)
        self.expire()
        for receivers in self.receivers.values():
            for receiver in receivers:
                receiver.wake()
        return events

    def expire(self) -> None:
        """Drop what the retention no longer keeps."""
        before = self.log.byte_count
        if self.log.expire(self._retention, self._clock()) and self._file is not None:
            self._file.expired(before - self.log.byte_count, self.log)

    def drop_before(self, sequence_number: int) -> int:
        """Drop the events below ``sequence_number`` as if they had expired."""
        dropped = self.log.drop_before(sequence_number)
        if dropped and self._file is not None:
            self._file.rewrite(self.log)  # no retention would drop them again after a restart
        return dropped

    def admit(self, receiver: PartitionReceiver, consumer_group: str) -> None:
        """Let a receiver in, and those out that it displaces.

        Raises:
            RefusedError: It has to stay out.
        """
        group = consumer_group.casefold()
        present = self.receivers.setdefault(group, [])
        for other in displaced_by(receiver, present):
            present.remove(other)
            other.refuse(
                epoch_taken_over(
                    other.receiver_name,
                    -1 if other.epoch is None else other.epoch,
                    receiver.receiver_name,
                    -1 if receiver.epoch is None else receiver.epoch,
                )
            )
        present.append(receiver)

    def dismiss(self, receiver: PartitionReceiver) -> None:
        """Forget a receiver whose link ended. Again does no harm."""
        for present in self.receivers.values():
            if receiver in present:
                present.remove(receiver)

    def close(self) -> None:
        """Let go of the file."""
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
        """When the hub came to be: milliseconds since 1970."""
        return self.partitions[0].created_ms

    def partition(self, partition_id: str) -> Partition:
        """Find a partition.

        Raises:
            RefusedError: There is none of this id.
        """
        # "01" and "٣" are decimal for Python; an id is exactly what the hub lists.
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
        """Where a message goes that names no partition: by its key, else to the next in turn.

        A batch goes to one partition, whole.
        """
        key = drafts[0].partition_key if drafts else None
        if key is not None:
            return self.partitions[partition_of(key, len(self.partitions))]
        self._round_robin = (self._round_robin + 1) % len(self.partitions)
        return self.partitions[self._round_robin]

    def add_partitions(self, count: int) -> None:
        """Grow. Keys may move to other partitions from then on, as they do in the service."""
        for index in range(len(self.partitions), len(self.partitions) + count):
            self.partitions.append(self._make_partition(str(index)))

    def close(self) -> None:
        """Let go of every file."""
        for partition in self.partitions:
            partition.close()


class Namespace:
    """All hubs of one emulator. Outlives the server: a restart finds the logs as they were."""

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
        return Hub(configuration, lambda index: self._make_partition(configuration.name, index))

    def _make_partition(self, hub_name: str, partition_id: str) -> Partition:
        directory = self._configuration.directory
        file = None
        if directory is not None:
            path = partition_path(directory, hub_name, partition_id)
            file = PartitionFile(path, sync=self._configuration.sync_to_disk)
        return Partition(
            partition_id, clock=self._clock, retention=self._configuration.retention, file=file
        )

    def hub(self, name: str, path: str | None = None) -> Hub:
        """Find a hub, whatever the case of its name.

        Raises:
            RefusedError: There is none of this name.
        """
        found = self.hubs.get(name.casefold())
        if found is None:
            raise entity_not_found(path or name)
        return found

    def expire(self) -> None:
        """Drop what has grown too old, in every partition."""
        for partition in self.partitions():
            partition.expire()

    def partitions(self) -> Iterable[Partition]:
        """Every partition of every hub."""
        return (partition for hub in self.hubs.values() for partition in hub.partitions)

    @property
    def ages(self) -> bool:
        """Whether time alone makes events expire."""
        return self._configuration.retention.age_max is not None

    @property
    def shortest_wait(self) -> timedelta:
        """How often to look for events that have grown too old."""
        age_max = self._configuration.retention.age_max or timedelta(minutes=1)
        return min(max(age_max / 10, timedelta(milliseconds=50)), timedelta(minutes=1))

    def close(self) -> None:
        """Let go of every file. Again does no harm."""
        for hub in self.hubs.values():
            hub.close()
        if self._lock is not None:
            self._lock.release()
