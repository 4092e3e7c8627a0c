"""What a test can see on a stage, and say of it."""

from collections import Counter
from collections.abc import Sequence

from checkpointstores.memory import MemoryAccount
from eventproc.config import EventProcessorConfig
from eventproc.core.progress import BEFORE_FIRST_SEQUENCE_NUMBER
from eventproc.deadletter import DeadLetter
from eventproc.deadletters import MemoryDeadLetterSink
from eventproc.handler import BlockingPartitionHandler, PartitionHandler
from eventproc.models import Checkpoint, CloseReason, ConsumerGroup, ReceivedEvent
from eventproc.sources.memory import MemoryHub
from eventproc.testing._stage_handlers import Watch
from eventproc.testing._stage_record import Closing, HandlerCall, Record


class StageView:
    """The half of a stage that changes nothing."""

    hub: MemoryHub
    dead_letter_sink: MemoryDeadLetterSink
    _account: MemoryAccount
    _config: EventProcessorConfig
    _record: Record
    _watch: Watch

    @property
    def _group(self) -> ConsumerGroup:
        return ConsumerGroup(
            fully_qualified_namespace=self.hub.namespace, eventhub_name=self.hub.name
        )

    # --- what there is to see ---------------------------------------------------------------------

    @property
    def handled(self) -> Sequence[ReceivedEvent]:
        """The events that were handled, in order; one that was handled twice is there twice.

        An event is handled when its call returned, or was checkpointed by a call that then failed.
        """
        return tuple(event for _, event in self._record.handled)

    @property
    def handled_bodies(self) -> list[bytes]:
        """The bodies of ``handled``."""
        return [event.body for event in self.handled]

    @property
    def calls(self) -> Sequence[HandlerCall]:
        """Every call of ``process_events``, whatever came of it."""
        return tuple(self._record.calls)

    @property
    def closings(self) -> Sequence[Closing]:
        """Every call of ``close``."""
        return tuple(self._record.closings)

    def owner_of(self, partition_id: str = "0") -> str | None:
        """Who owns a partition, by the record in the store."""
        record = self._account.records(self._group).ownership_by_partition.get(partition_id)
        return None if record is None else record.owner_id

    def handler(self, partition_id: str = "0") -> PartitionHandler | BlockingPartitionHandler:
        """The handler that serves a partition, or was the last to do so: an object of yours."""
        for (_, known), handler in reversed(self._watch.handler_by_place.items()):
            if known == partition_id:
                return handler
        raise self._record.failure(f"no handler was ever made for partition {partition_id!r}")

    def checkpoint(self, partition_id: str = "0") -> Checkpoint | None:
        """What the store has of a partition."""
        return self._account.records(self._group).checkpoint_by_partition.get(partition_id)

    def checkpointed(self, partition_id: str = "0") -> int | None:
        """The sequence number of the last event that a checkpoint covers; ``None`` without one."""
        checkpoint = self.checkpoint(partition_id)
        number = None if checkpoint is None else checkpoint.sequence_number
        return None if number == BEFORE_FIRST_SEQUENCE_NUMBER else number

    def state(self, partition_id: str = "0") -> bytes | None:
        """The state as stored with the checkpoint."""
        checkpoint = self.checkpoint(partition_id)
        return None if checkpoint is None else checkpoint.state

    def due(self, partition_id: str) -> Sequence[ReceivedEvent]:
        """The events that a group has to handle if it has no checkpoint."""
        position = self._config.position_without_checkpoint(partition_id)
        return self.hub.events(partition_id, None if position.is_latest else position)

    @property
    def dead_letters(self) -> Sequence[DeadLetter]:
        """What was given up and stored, by the failure policy ``DEAD_LETTER``."""
        return tuple(self.dead_letter_sink.letters)

    def story(self) -> str:
        """All that happened, a line for each thing; an assertion that fails ends with it."""
        return self._record.story()

    # --- what there is to say ---------------------------------------------------------------------

    def assert_handled(self, *bodies: bytes | str, partition_id: str | None = None) -> None:
        """Exactly these were handled, in this order; of one partition, or of all together."""
        expected = [body.encode() if isinstance(body, str) else body for body in bodies]
        actual = [event.body for p, event in self._record.handled if partition_id in (None, p)]
        if actual != expected:
            raise self._record.failure(f"handled were {actual}, expected {expected}")

    def assert_dead_lettered(self, *bodies: bytes | str) -> None:
        """Exactly these were given up and stored as dead letters, in this order."""
        expected = [body.encode() if isinstance(body, str) else body for body in bodies]
        actual = [letter.event.body for letter in self.dead_letters]
        if actual != expected:
            raise self._record.failure(f"dead letters were {actual}, expected {expected}")

    def assert_nothing_lost(self) -> None:
        """Every event that the hub has was handled at least once, or is a dead letter."""
        counts = self._counts()
        for letter in self.dead_letters:
            counts[letter.partition_id, letter.event.sequence_number] += 1
        lost = [place for place, count in counts.items() if count == 0]
        if lost:
            raise self._record.failure(f"never handled: {_places(lost)}")

    def assert_each_handled_once(self) -> None:
        """Every event that the hub has and that was not given up was handled exactly once."""
        self.assert_nothing_lost()
        repeated = [place for place, count in self._counts().items() if count > 1]
        if repeated:
            raise self._record.failure(f"handled more than once: {_places(repeated)}")

    def assert_checkpointed(self) -> None:
        """The checkpoints cover all that was handled."""
        newest: dict[str, int] = {}
        for partition_id, event in self._record.handled:
            newest[partition_id] = max(event.sequence_number, newest.get(partition_id, -1))
        for partition_id, number in sorted(newest.items()):
            stored = self.checkpointed(partition_id)
            if stored is None or stored < number:
                raise self._record.failure(
                    f"partition {partition_id!r} is handled up to {number}, "
                    f"but its checkpoint says {stored}"
                )

    def assert_closed(self, reason: CloseReason, partition_id: str = "0") -> None:
        """The last handler of the partition that was closed was closed for this reason."""
        reasons = [c.reason for c in self._record.closings if c.partition_id == partition_id]
        if not reasons:
            raise self._record.failure(f"no handler of partition {partition_id!r} was closed")
        if reasons[-1] is not reason:
            raise self._record.failure(
                f"partition {partition_id!r} was closed because of {reasons[-1].value!r}, "
                f"expected {reason.value!r}"
            )

    def _counts(self) -> Counter[tuple[str, int]]:
        """How often each event was handled that is in the hub and not before the beginning."""
        counts: Counter[tuple[str, int]] = Counter()
        for partition_id in self.hub.partition_ids():
            for event in self.due(partition_id):
                counts[partition_id, event.sequence_number] = 0
        counts.update(
            (partition_id, event.sequence_number)
            for partition_id, event in self._record.handled
            if (partition_id, event.sequence_number) in counts
        )
        return counts


def _places(places: Sequence[tuple[str, int]]) -> str:
    shown = [f"event {number} of partition {p!r}" for p, number in places[:10]]
    more = len(places) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
