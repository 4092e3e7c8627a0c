"""One partition in one call of ``receive``, and the contexts that the callbacks get of it."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

from azure.eventhub import EventData
from azure.eventhub import PartitionContext as ThreadsPartitionContext
from azure.eventhub.aio import PartitionContext as AioPartitionContext

from eventproc._base.logs import get_logger
from eventproc._core.delivery.checkpoints import pumps_writer
from eventproc._delivery.handler import PartitionContext
from eventproc.compat._checkpoints import Checkpoints, Move
from eventproc.compat._errors import azures_error
from eventproc.errors import StoreError
from eventproc.models import ConsumerGroup

_NEWEST: Final = "last_enqueued_"


class Partition:
    """What outlives a failure and a change of owner: the newest event, and the failures in a row.

    The program may keep the context, and use it at any time, from any thread.
    """

    def __init__(self, partition_id: str, checkpoints: Checkpoints) -> None:
        self.partition_id = partition_id
        self.failure_count = 0
        self.failed_at = -1
        """The highest sequence number that was delivered when a callback failed."""

        self.resume_at_s = 0.0
        """When the partition is served again after a failure, by the loop's time."""

        self.delivered = -1
        """The highest sequence number of this ownership that was given to a callback."""

        self.newest: EventData | None = None
        """The event that was given to a callback last."""

        self._checkpoints = checkpoints
        self._current: PartitionContext | None = None
        self._incarnation = uuid4().hex
        self._is_told = False
        self._log = get_logger("eventproc.compat", partition_id=partition_id)

    def begin(self, current: PartitionContext) -> None:
        """Note that this process owns the partition."""
        self._current, self.newest, self.delivered, self._is_told = current, None, -1, False
        self._checkpoints.begin(self.partition_id)

    @property
    def is_owned(self) -> bool:
        """Whether the lease is trusted now."""
        return self._current is not None and self._current.is_owned

    @property
    def last_enqueued(self) -> dict[str, Any] | None:
        """What the newest event says of the end of its partition."""
        if self.newest is None:
            return None
        found: Mapping[Any, Any] = self.newest.raw_amqp_message.delivery_annotations or {}
        by_name = {_text(name).removeprefix(_NEWEST): value for name, value in found.items()}
        if "sequence_number" not in by_name:
            return None
        return {
            "sequence_number": by_name["sequence_number"],
            "offset": _text(by_name.get("offset")) or None,
            "enqueued_time": _time(by_name.get("time_utc")),
            "retrieval_time": _time(by_name.get("runtime_info_retrieval_time_utc")),
        }

    def store(self, event: EventData | None, options: Mapping[str, Any]) -> Future[None] | None:
        """Begin to store that everything up to an event is handled; ``None``: there is nothing to.

        Raises:
            ValueError: the event was not received.
        """
        event = event or self.newest
        current = self._current
        if event is None or current is None:
            return None
        offset, number = event.offset, event.sequence_number
        if offset is None or number is None:
            raise ValueError(
                "the event has no offset, so it was not received: give update_checkpoint an event "
                "of this partition, or none for the newest"
            )
        move = Move(
            partition_id=self.partition_id,
            offset=offset,
            sequence_number=number,
            writer=pumps_writer(current.owner_id, self._incarnation, 0),
            is_owned=lambda: self.is_owned,
            options=options,
        )
        loop = self._checkpoints.loop
        if loop is None or not self.is_owned:
            self._tell(move, "this process does not own the partition any more")
            return None
        return asyncio.run_coroutine_threadsafe(self._move(move), loop)

    async def _move(self, move: Move) -> None:
        try:
            refusal = await self._checkpoints.move(move)
        except StoreError as error:
            raise azures_error(error) from error
        if refusal is not None:
            self._tell(move, refusal)

    def _tell(self, move: Move, reason: str) -> None:
        """Log a checkpoint that changes nothing, once for each ownership."""
        log = self._log.debug if self._is_told else self._log.warning
        self._is_told = True
        log("checkpoint_ignored", sequence_number=move.sequence_number, reason=reason)


class _Context:
    """What the contexts of both clients have in common."""

    def __init__(self, partition: Partition, group: ConsumerGroup) -> None:
        names = group.fully_qualified_namespace, group.eventhub_name, group.name
        super().__init__(*names, partition.partition_id)  # type: ignore[call-arg]  # Azure's class
        self._partition = partition

    @property
    def last_enqueued_event_properties(self) -> dict[str, Any] | None:
        """The newest event of the partition, as its newest received event says."""
        return self._partition.last_enqueued


class AioContext(_Context, AioPartitionContext):
    """The context of the client for an event loop."""

    async def update_checkpoint(self, event: EventData | None = None, **kwargs: Any) -> None:  # noqa: ANN401
        """Store that everything up to an event, or the newest one, is handled."""
        storing = self._partition.store(event, kwargs)
        if storing is not None:
            await asyncio.wrap_future(storing)


class ThreadsContext(_Context, ThreadsPartitionContext):
    """The context of the client for threads."""

    def update_checkpoint(self, event: EventData | None = None, **kwargs: Any) -> None:  # noqa: ANN401
        """Store that everything up to an event, or the newest one, is handled."""
        storing = self._partition.store(event, kwargs)
        if storing is not None:
            storing.result()


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value or "")


def _time(value: object) -> datetime | None:
    return datetime.fromtimestamp(value / 1000, UTC) if isinstance(value, int) and value else None
