"""A store with the four methods of Azure's ``CheckpointStore``, as a store of a processor.

Such a store has no member records, and its checkpoints are written without a condition. So the
group balances by ownership alone, as Azure's client does, and ``Checkpoints`` checks the lease.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from checkpointstores.memory import MemoryCheckpointStore
from eventproc._core.delivery.checkpoints import BEFORE_FIRST_SEQUENCE_NUMBER, checkpoint_after
from eventproc.compat._checkpoints import OPTIONS
from eventproc.errors import StoreUnavailableError
from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    OwnershipClaim,
    OwnershipSnapshot,
    PartitionOwnership,
    WriteOutcome,
)
from eventproc.ports import ForwardingStore

METHODS: Final = ("list_ownership", "claim_ownership", "list_checkpoints", "update_checkpoint")


class UserStore(ForwardingStore):
    """Ownership and checkpoints are those of the user's store; member records stay in memory.

    Functions run in a thread, and coroutines on the event loop that called ``receive``, to which
    the store's connections belong.
    """

    def __init__(self, users: Any, home: asyncio.AbstractEventLoop | None) -> None:  # noqa: ANN401
        """Use an object with the four methods; *home* is the loop of its coroutines, if any."""
        super().__init__(MemoryCheckpointStore())
        self._users = users
        self._home = home

    def __repr__(self) -> str:
        return f"UserStore({type(self._users).__name__})"

    async def _call(self, method: str, *args: object, **options: object) -> Any:  # noqa: ANN401
        function: Callable[..., Any] = getattr(self._users, method)

        async def ask() -> Any:  # noqa: ANN401
            return await function(*args, **options)

        try:
            if self._home is None:
                return await asyncio.to_thread(partial(function, *args, **options))
            asked = asyncio.run_coroutine_threadsafe(ask(), self._home)
            return await asyncio.wrap_future(asked)
        except TypeError as error:
            if options and "unexpected keyword argument" in str(error):
                return await self._call(method, *args)
            raise
        except Exception as error:
            raise StoreUnavailableError(
                f"{method} of {type(self._users).__name__} failed: {error!r}"
            ) from error

    async def list_ownership(self, group: ConsumerGroup) -> OwnershipSnapshot:
        """List the records; their time is compared with this machine's clock, as Azure does."""
        found = await self._call("list_ownership", *_names(group))
        return OwnershipSnapshot(ownerships=tuple(map(_ownership, found)), as_of=datetime.now(UTC))

    async def claim_ownership(
        self, group: ConsumerGroup, claims: Sequence[OwnershipClaim]
    ) -> Sequence[ClaimResult]:
        return await asyncio.gather(*(self._claim(group, claim) for claim in claims))

    async def _claim(self, group: ConsumerGroup, claim: OwnershipClaim) -> ClaimResult:
        wanted: dict[str, object] = {
            **_fields(group, claim.partition_id),
            "owner_id": claim.owner_id or "",
            "last_modified_time": time.time(),
        }
        if claim.expected_etag:
            wanted["etag"] = claim.expected_etag
        try:
            won = await self._call("claim_ownership", [wanted])
        except StoreUnavailableError as error:
            return ClaimResult(claim=claim, outcome=WriteOutcome.UNKNOWN, error=error)
        if not won:
            return ClaimResult(claim=claim, outcome=WriteOutcome.LOST)
        written = replace(_ownership(won[0]), epoch=claim.epoch)
        return ClaimResult(claim=claim, outcome=WriteOutcome.WON, ownership=written)

    async def list_checkpoints(self, group: ConsumerGroup) -> Sequence[Checkpoint]:
        found = await self._call("list_checkpoints", *_names(group))
        return [_checkpoint(each) for each in found if each.get("offset")]

    async def read_checkpoint(self, group: ConsumerGroup, partition_id: str) -> Checkpoint | None:
        """Find it in the listing: Azure's store has no method for one."""
        found = await self.list_checkpoints(group)
        return next((each for each in found if each.partition_id == partition_id), None)

    async def update_checkpoint(
        self, group: ConsumerGroup, update: CheckpointUpdate
    ) -> CheckpointResult:
        """Write a new position. An adoption is not written: it could undo a newer one."""
        former = update.replaces
        if former is None or former.sequence_number != update.sequence_number:
            checkpoint = {
                **_fields(group, update.partition_id),
                "offset": update.offset,
                "sequence_number": update.sequence_number,
            }
            options: Mapping[str, Any] = OPTIONS.get() or {}
            try:
                await self._call("update_checkpoint", checkpoint, **options)
            except StoreUnavailableError as error:
                return CheckpointResult(outcome=WriteOutcome.UNKNOWN, error=error)
        written = replace(
            checkpoint_after(update, former),
            etag=f"{update.offset}/{update.sequence_number}",
            last_modified=datetime.now(UTC),
        )
        return CheckpointResult(outcome=WriteOutcome.WON, checkpoint=written)


class OwnedAlone(ForwardingStore):
    """Ownership and members stay in memory; only checkpoints are in the other store.

    For a call that receives from one partition without balancing.
    """

    def __init__(self, checkpoints: Any) -> None:  # noqa: ANN401 - a CheckpointStore
        """Keep checkpoints in this store."""
        super().__init__(checkpoints)
        self._alone = MemoryCheckpointStore()

    async def open(self) -> None:
        await self._alone.open()
        await super().open()

    async def close(self) -> None:
        await self._alone.close()
        await super().close()

    async def forward(self, method: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        """Forward what concerns checkpoints; the memory has the rest."""
        store = self.store if "checkpoint" in method.__name__ else self._alone
        return await getattr(store, method.__name__)(*args, **options)

    async def watch(
        self, group: ConsumerGroup, owner_id: str, changed: Callable[[], object]
    ) -> None:
        """Watch nothing: no other process is in this group."""


def _names(group: ConsumerGroup) -> tuple[str, str, str]:
    return group.fully_qualified_namespace, group.eventhub_name, group.name


def _fields(group: ConsumerGroup, partition_id: str) -> dict[str, object]:
    names = ("fully_qualified_namespace", "eventhub_name", "consumer_group")
    return {**dict(zip(names, _names(group), strict=True)), "partition_id": partition_id}


def _ownership(record: Mapping[str, Any]) -> PartitionOwnership:
    modified = record.get("last_modified_time") or 0.0
    if not isinstance(modified, datetime):
        modified = datetime.fromtimestamp(float(modified), UTC)
    return PartitionOwnership(
        partition_id=str(record["partition_id"]),
        owner_id=record.get("owner_id") or None,
        etag=record.get("etag") or "",
        last_modified=modified,
    )


def _checkpoint(record: Mapping[str, Any]) -> Checkpoint:
    number = record.get("sequence_number")
    return Checkpoint(
        partition_id=str(record["partition_id"]),
        offset=str(record["offset"]),
        sequence_number=BEFORE_FIRST_SEQUENCE_NUMBER if number is None else int(number),
        etag=f"{record['offset']}/{number}",
        last_modified=datetime.now(UTC),
    )
