"""The read-only half of the harness: results and assertions."""

from collections import Counter
from collections.abc import Sequence

from checkpointstores.memory import MemoryAccount
from eventproc._core.delivery.checkpoints import BEFORE_FIRST_SEQUENCE_NUMBER
from eventproc._delivery.config import EventProcessorConfig
from eventproc._delivery.handler import BlockingPartitionHandler, PartitionHandler
from eventproc.dead_letters import MemoryDeadLetterSink
from eventproc.models import Checkpoint, CloseReason, ConsumerGroup, DeadLetter, ReceivedEvent
from eventproc.sources.memory import MemoryHub
from eventproc.testing._harness.handlers import HandlerMonitor
from eventproc.testing._harness.record import Closing, HandlerCall, Record


class HarnessView:
    """The methods of a harness that change nothing."""

    hub: MemoryHub
    dead_letter_sink: MemoryDeadLetterSink
    _account: MemoryAccount
    _config: EventProcessorConfig
    _record: Record
    _monitor: HandlerMonitor

    @property
    def _group(self) -> ConsumerGroup:
        return ConsumerGroup(
            fully_qualified_namespace=self.hub.namespace, eventhub_name=self.hub.name
        )

    # --- results ----------------------------------------------------------------------------------

    @property
    def handled(self) -> Sequence[ReceivedEvent]:
        """The handled events, in order; an event that was handled twice occurs twice.

        An event is handled when its call returned, or was checkpointed by a call that then failed.
        """
        return tuple(event for _, event in self._record.handled)

    @property
    def handled_bodies(self) -> list[bytes]:
        """The bodies of ``handled``."""
        return [event.body for event in self.handled]

    @property
    def calls(self) -> Sequence[HandlerCall]:
        """Every call of ``process_events``, failed ones included."""
        return tuple(self._record.calls)

    @property
    def closings(self) -> Sequence[Closing]:
        """Every call of ``close``."""
        return tuple(self._record.closings)

    def owner_of(self, partition_id: str = "0") -> str | None:
        """Return the owner of a partition, by its record in the store."""
        record = self._account.records(self._group).ownership_by_partition.get(partition_id)
        return None if record is None else record.owner_id

    def handler(self, partition_id: str = "0") -> PartitionHandler | BlockingPartitionHandler:
        """Return the user's handler that serves a partition, or was the last to serve it."""
        for (_, known), handler in reversed(self._monitor.handler_by_place.items()):
            if known == partition_id:
                return handler
        raise self._record.failure(f"no handler was ever made for partition {partition_id!r}")

    def checkpoint(self, partition_id: str = "0") -> Checkpoint | None:
        """Return the stored checkpoint of a partition."""
        return self._account.records(self._group).checkpoint_by_partition.get(partition_id)

    def checkpointed(self, partition_id: str = "0") -> int | None:
        """Return the sequence number of a partition's checkpoint; ``None`` without one."""
        checkpoint = self.checkpoint(partition_id)
        number = None if checkpoint is None else checkpoint.sequence_number
        return None if number == BEFORE_FIRST_SEQUENCE_NUMBER else number

    def state(self, partition_id: str = "0") -> bytes | None:
        """Return the state that is stored with the checkpoint."""
        checkpoint = self.checkpoint(partition_id)
        return None if checkpoint is None else checkpoint.state

    def due(self, partition_id: str) -> Sequence[ReceivedEvent]:
        """Return the events that a consumer group without a checkpoint has to handle."""
        position = self._config.position_without_checkpoint(partition_id)
        return self.hub.events(partition_id, None if position.is_latest else position)

    @property
    def dead_letters(self) -> Sequence[DeadLetter]:
        """The dead letters that the failure action ``DEAD_LETTER`` stored."""
        return tuple(self.dead_letter_sink.letters)

    def history(self) -> str:
        """Return all that happened, one line each, as at the end of a failed assertion."""
        return self._record.history()

    # --- assertions -------------------------------------------------------------------------------

    def assert_handled(self, *bodies: bytes | str, partition_id: str | None = None) -> None:
        """Assert that exactly these bodies were handled, in order; in one partition or in all."""
        expected = [body.encode() if isinstance(body, str) else body for body in bodies]
        actual = [event.body for p, event in self._record.handled if partition_id in (None, p)]
        if actual != expected:
            raise self._record.failure(f"handled were {actual}, expected {expected}")

    def assert_dead_lettered(self, *bodies: bytes | str) -> None:
        """Assert that exactly these bodies are dead letters, in this order."""
        expected = [body.encode() if isinstance(body, str) else body for body in bodies]
        actual = [letter.event.body for letter in self.dead_letters]
        if actual != expected:
            raise self._record.failure(f"dead letters were {actual}, expected {expected}")

    def assert_nothing_lost(self) -> None:
        """Assert that every event of the hub was handled at least once, or is a dead letter."""
        counts = self._counts()
        for letter in self.dead_letters:
            counts[letter.partition_id, letter.event.sequence_number] += 1
        lost = [place for place, count in counts.items() if count == 0]
        if lost:
            raise self._record.failure(f"never handled: {_places(lost)}")

    def assert_each_handled_once(self) -> None:
        """Assert that every event that is not a dead letter was handled exactly once."""
        self.assert_nothing_lost()
        repeated = [place for place, count in self._counts().items() if count > 1]
        if repeated:
            raise self._record.failure(f"handled more than once: {_places(repeated)}")

    def assert_checkpointed(self) -> None:
        """Assert that the checkpoints cover all handled events."""
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
        """Assert that the partition's last closed handler was closed for this reason."""
        reasons = [c.reason for c in self._record.closings if c.partition_id == partition_id]
        if not reasons:
            raise self._record.failure(f"no handler of partition {partition_id!r} was closed")
        if reasons[-1] is not reason:
            raise self._record.failure(
                f"partition {partition_id!r} was closed because of {reasons[-1].value!r}, "
                f"expected {reason.value!r}"
            )

    def _counts(self) -> Counter[tuple[str, int]]:
        """Return how often each due event of the hub was handled."""
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
