"""The store of one call of ``receive``: only ``update_checkpoint`` of the program moves a position.

A processor stores what its handler has returned from, which a program with a buffer has not handled
yet. So what the processor writes is kept here for this call, and what the program writes goes to
the store. Adoptions go there, too: they change no position, and fence a former owner.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from eventproc._core.delivery.checkpoints import (
    checkpoint_after,
    completed_above,
    is_behind,
    is_moved_by_operator,
    is_of_former_hub,
)
from eventproc.errors import OwnershipLostError, StoreUnavailableError
from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ConsumerGroup,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore, ForwardingStore

ATTEMPTS_MAX: Final = 3
"""Writes without an answer before ``update_checkpoint`` raises. The store has repeated each."""


@dataclass(frozen=True, kw_only=True)
class Move:
    """A position that the program wants to be stored."""

    partition_id: str
    offset: str
    sequence_number: int
    writer: str
    is_owned: Callable[[], bool]
    options: Mapping[str, Any]
    """See ``OPTIONS``."""


OPTIONS: Final[ContextVar[Mapping[str, Any] | None]] = ContextVar("options", default=None)
"""The program's keyword arguments for ``update_checkpoint``; a store of its own gets them."""


class Checkpoints(ForwardingStore):
    """Keeps positions of the processor to itself, and stores those of the program."""

    def __init__(self, store: CheckpointStore, group: ConsumerGroup) -> None:
        """Use this store for this group only."""
        super().__init__(store)
        self._group = group
        self._stored: dict[str, Checkpoint | None] = {}
        """What the store has, as far as is known."""

        self._begun: dict[str, Checkpoint] = {}
        """Where partitions without a checkpoint began in this call, if the processor wrote it."""

        self._starting: set[str] = set()
        """Partitions whose pump looks for where to begin; later it writes what it handled."""

        self._writing: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop that the store belongs to; ``None`` while it is closed."""

    async def open(self) -> None:
        await super().open()
        self._writing.clear()
        self.loop = asyncio.get_running_loop()

    async def close(self) -> None:
        self.loop = None
        await super().close()

    async def read_checkpoint(
        self,
        group: ConsumerGroup,  # noqa: ARG002 - it has one
        partition_id: str,
    ) -> Checkpoint | None:
        """Return the stored checkpoint, or else where the partition began in this call.

        ``None`` if that is a time, a number or an offset: the partition begins there again.
        """
        async with self._writing[partition_id]:
            found = await self._read(partition_id)
        if found is not None and (found.offset or found.sequence_number is not None):
            return found
        self._starting.add(partition_id)
        return self._begun.get(partition_id, found)

    def begin(self, partition_id: str) -> None:
        """Note that the partition has begun: what the processor writes now, it has handled."""
        self._starting.discard(partition_id)

    async def update_checkpoint(
        self,
        group: ConsumerGroup,  # noqa: ARG002 - it has one
        update: CheckpointUpdate,
    ) -> CheckpointResult:
        """Store an adoption, a reset and the mark of a former hub; keep every other position."""
        partition_id = update.partition_id
        async with self._writing[partition_id]:
            stored = self._stored.get(partition_id)
            replaced = None if update.replaces is None else update.replaces.etag
            is_current = stored is not None and replaced == stored.etag
            if update.is_reset or (
                is_current and stored and stored.sequence_number == update.sequence_number
            ):
                return await self._write(update)
            now = datetime.now(UTC)  # An older checkpoint would be one of a former hub.
            kept = replace(checkpoint_after(update, update.replaces), last_modified=now)
            if is_of_former_hub(kept, None) and stored and stored.offset:
                number = stored.sequence_number or 0
                marked = replace(update, offset=stored.offset, sequence_number=number)
                return await self._write(replace(marked, replaces=stored))
            if partition_id in self._starting:
                self._begun.setdefault(partition_id, kept)
            return CheckpointResult(outcome=WriteOutcome.WON, checkpoint=kept)

    async def move(self, move: Move) -> str | None:
        """Store a position of the program; return why it was not stored.

        Raises:
            OwnershipLostError: an operator moved the checkpoint; the partition begins again there.
            StoreUnavailableError: it is not known whether it is stored.
        """
        OPTIONS.set(move.options)
        attempts = 0
        async with self._writing[move.partition_id]:
            while True:
                stored = self._stored.get(move.partition_id)
                if not move.is_owned():
                    return "this process does not own the partition any more"
                # In later calls, too: the record is the operator's until the next pump adopts it.
                if stored is not None and is_moved_by_operator(stored):
                    raise OwnershipLostError(move.partition_id)
                if is_behind(move.sequence_number, stored):
                    return f"the stored position is {stored.sequence_number if stored else None}"
                result = await self._write(
                    CheckpointUpdate(
                        partition_id=move.partition_id,
                        offset=move.offset,
                        sequence_number=move.sequence_number,
                        replaces=stored,
                        writer=move.writer,
                        completed=completed_above(
                            stored.completed if stored else (), move.sequence_number
                        ),
                    )
                )
                if result.outcome is WriteOutcome.WON:
                    return None
                attempts += result.outcome is WriteOutcome.UNKNOWN
                if attempts >= ATTEMPTS_MAX:
                    raise result.error or StoreUnavailableError(
                        f"the store did not say whether the checkpoint of partition "
                        f"{move.partition_id!r} was written"
                    )
                await self._read(move.partition_id)

    async def _read(self, partition_id: str) -> Checkpoint | None:
        found = await super().read_checkpoint(self._group, partition_id)
        self._stored[partition_id] = found
        return found

    async def _write(self, update: CheckpointUpdate) -> CheckpointResult:
        result = await super().update_checkpoint(self._group, update)
        if result.outcome is WriteOutcome.WON:
            self._stored[update.partition_id] = result.checkpoint
        return result
