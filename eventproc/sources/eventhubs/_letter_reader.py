"""Reads dead letters from an event hub, of which single events cannot be deleted.

Rule: a checkpoint of a consumer group of the hub, with completed ranges, records which letters are
removed. It is written conditionally, so of two concurrent replays one fails.
"""

import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final

from eventproc._core.delivery.checkpoints import is_of_other_hub, operators_writer
from eventproc._core.delivery.progress import PartitionProgress
from eventproc.errors import (
    ConfigurationError,
    DeadLetterError,
    LetterDamagedError,
    SourceError,
    SourceRejectedError,
    StoreError,
    SuspectSettingError,
)
from eventproc.models import (
    COMPLETED_RANGES_MAX,
    REPLAYED_FROM,
    Checkpoint,
    CheckpointUpdate,
    ConsumerGroup,
    DeadLetter,
    EventPosition,
    ReceivedEvent,
    StoredLetter,
    WriteOutcome,
    in_order,
    letter_from_details,
)
from eventproc.ports import CheckpointStore, DeadLetterReader
from eventproc.sources.eventhubs._letters import (
    PROPERTY_PREFIX,
    LetterPart,
    letter_from_parts,
    part_of,
)
from eventproc.sources.eventhubs._source import EventHubSource

REMOVED_GROUP: Final = "$dead-letters"
"""The consumer group whose checkpoints record the removed letters."""

_EVENTS_MAX: Final = 500
_WAIT_MAX: Final = timedelta(seconds=5)
_SILENT_RECEIVES_MAX: Final = 6


@dataclass(slots=True, kw_only=True)
class _Partition:
    """The letters of one partition of the hub, and which of them are removed."""

    progress: PartitionProgress
    checkpoint: Checkpoint | None
    is_reset: bool
    """Whether the checkpoint is of a former hub."""

    events: list[ReceivedEvent] = field(default_factory=list)
    """The letters that are not removed."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """The place of one copy of a letter; a letter may have been sent twice."""

    partition_id: str
    event: ReceivedEvent


class EventHubDeadLetterReader(DeadLetterReader):
    """Reads the letters that ``EventHubDeadLetterSink`` has sent.

    A hub deletes no single events, so which letters are removed is noted in a checkpoint store. All
    letters that are not removed are in memory at once.

    Args:
        source: of the hub for dead letters. The reader opens and closes it.
        store: an open store, which may be that of the processors; without one nothing can be
            removed, and letters that were removed before are shown.
        consumer_group: of the hub, to read through. No other receiver should use it.
    """

    def __init__(
        self,
        source: EventHubSource,
        *,
        store: CheckpointStore | None = None,
        consumer_group: str = "$Default",
    ) -> None:
        self._source = source
        self._store = store
        self._consumer_group = consumer_group
        self._group = ConsumerGroup(
            fully_qualified_namespace=source.fully_qualified_namespace,
            eventhub_name=source.eventhub_name,
            name=REMOVED_GROUP,
        )
        self._writer = operators_writer(secrets.token_hex(8))
        self._partitions: dict[str, _Partition] = {}

    async def open(self) -> None:
        try:
            await self._source.open()
            await self._source.check_consumer_group(self._consumer_group)
        except BaseException as error:
            await self.close()
            if isinstance(error, SourceError):
                raise _translated(error) from error
            raise

    async def close(self) -> None:
        await self._source.close()

    async def letters(self) -> AsyncIterator[StoredLetter]:
        try:
            for partition_id in await self._source.partition_ids():
                self._partitions[partition_id] = await self._read(partition_id)
        except SourceError as error:
            raise _translated(error) from error
        except StoreError as error:
            raise DeadLetterError(f"which letters are removed is not known: {error}") from error
        for stored in in_order(self._found()):
            yield stored

    async def remove(self, stored: StoredLetter) -> bool:
        if self._store is None:
            raise ConfigurationError(
                f"{self._source!r} deletes no single events: give a checkpoint store, which keeps "
                "which of its letters are removed"
            )
        assert isinstance(stored.handle, tuple), "a letter of this reader"
        for copy in stored.handle:
            if not await self._note_removed(self._store, copy):
                return False
        return True

    async def _note_removed(self, store: CheckpointStore, copy: _Copy) -> bool:
        partition = self._partitions[copy.partition_id]
        partition.progress.done((copy.event,))
        snapshot = partition.progress.snapshot()
        assert snapshot is not None, "it was pinned"
        if len(snapshot.completed) >= COMPLETED_RANGES_MAX:
            raise DeadLetterError(
                f"partition {copy.partition_id!r} would have {COMPLETED_RANGES_MAX} removed "
                "letters apart from each other, because those of other partitions lie between "
                "them: replay or drop letters in steps, the oldest first (--until)"
            )
        update = CheckpointUpdate(
            partition_id=copy.partition_id,
            offset=snapshot.offset,
            sequence_number=snapshot.sequence_number,
            replaces=partition.checkpoint,
            writer=self._writer,
            completed=snapshot.completed,
            is_reset=partition.is_reset,
        )
        result = await store.update_checkpoint(self._group, update)
        if result.outcome is WriteOutcome.LOST:
            return False
        if result.checkpoint is None:
            raise DeadLetterError(
                f"the letter at {_place(copy)} is not known to be removed"
                + ("" if result.error is None else f": {result.error}")
            )
        partition.checkpoint, partition.is_reset = result.checkpoint, False
        return True

    async def _read(self, partition_id: str) -> _Partition:
        """Read the letters that the partition has now and that are not removed."""
        checkpoint = None
        if self._store is not None:
            checkpoint = await self._store.read_checkpoint(self._group, partition_id)
        end = await self._source.partition_properties(partition_id)
        is_former = checkpoint is not None and is_of_other_hub(
            checkpoint, end, self._source.created_at
        )
        progress = PartitionProgress(has_state=False)
        partition = _Partition(progress=progress, checkpoint=checkpoint, is_reset=is_former)
        position = EventPosition.earliest()
        if checkpoint is not None and checkpoint.offset is not None and not is_former:
            partition.progress.restore(checkpoint)
            position = EventPosition.from_offset(
                checkpoint.offset, sequence_number=checkpoint.sequence_number
            )
        else:
            partition.progress.pin(-1, "-1")
        removed_to = partition.progress.sequence_number
        assert removed_to is not None, "it was restored or pinned"
        if end.is_empty or end.last_enqueued_sequence_number <= removed_to:
            return partition
        receiver = await self._source.open_receiver(self._consumer_group, partition_id, position)
        try:
            last, silent_count = -1, 0
            while last < end.last_enqueued_sequence_number:
                events = await receiver.receive(events_max=_EVENTS_MAX, wait_max=_WAIT_MAX)
                silent_count = 0 if events else silent_count + 1
                if silent_count == _SILENT_RECEIVES_MAX:
                    raise DeadLetterError(
                        f"partition {partition_id!r} of {self._source!r} has event "
                        f"{end.last_enqueued_sequence_number}, and does not send it"
                    )
                if events:
                    last = events[-1].sequence_number
                    partition.events += partition.progress.admit(events)
        finally:
            await receiver.close()
        return partition

    def _found(self) -> Iterable[StoredLetter]:
        parts: dict[str, list[tuple[LetterPart, _Copy]]] = {}
        for partition_id, partition in self._partitions.items():
            for event in partition.events:
                copy = _Copy(partition_id, event)
                if (part := part_of(event)) is not None:
                    parts.setdefault(part.json_sha256, []).append((part, copy))
                else:
                    yield from _stored([copy], partial(_letter_of, event))
        for found in parts.values():
            whole = partial(letter_from_parts, [part for part, _ in found])
            yield from _stored([copy for _, copy in found], whole)


def _letter_of(event: ReceivedEvent) -> DeadLetter:
    """Return the dead letter in an event of the hub.

    Raises:
        LetterDamagedError: the event is not a dead letter.
    """
    given = event.properties.items()
    own = {n.removeprefix(PROPERTY_PREFIX): v for n, v in given if n.startswith(PROPERTY_PREFIX)}
    contents = ReceivedEvent(
        body=event.body,
        sequence_number=event.sequence_number,
        offset=event.offset,
        enqueued_time=event.enqueued_time,
        partition_key=event.partition_key,
        properties={n: v for n, v in given if not n.startswith(PROPERTY_PREFIX)},
        system_properties=(
            {} if event.replayed_from is None else {REPLAYED_FROM: event.replayed_from}
        ),
        content_type=event.content_type,
        correlation_id=event.correlation_id,
        message_id=event.message_id,
    )
    return letter_from_details(own, contents)


def _stored(copies: Iterable[_Copy], read: Callable[[], DeadLetter]) -> Iterator[StoredLetter]:
    """Yield a letter once for each event that it is in."""
    letter, damage = None, ""
    try:
        letter = read()
    except LetterDamagedError as error:
        damage = str(error)
    for copy in copies:
        yield StoredLetter(
            place=_place(copy),
            letter=letter,
            damage=damage,
            raw=b"" if letter else copy.event.body,
            handle=copy,
        )


def _place(copy: _Copy) -> str:
    return f"{copy.partition_id}/{copy.event.sequence_number}"


def _translated(error: SourceError) -> DeadLetterError | ConfigurationError:
    if isinstance(error, SourceRejectedError | SuspectSettingError):
        return ConfigurationError(f"dead letters cannot be read: {error}")
    return DeadLetterError(f"dead letters cannot be read now: {error}")
