"""A foreign processor: it follows the rule and the profile of one of Azure's SDKs.

It uses the same two ports as ``EventProcessor``, and behaves as the Azure SDKs do: it steals
without asking, notices a lost partition only at its next poll or when its link to the hub ends,
writes checkpoints unconditionally, and writes none when it stops or loses a partition.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from random import Random
from typing import Final

from eventproc._delivery.config import EventProcessorConfig
from eventproc.errors import SourceError, StoreError
from eventproc.models import (
    Checkpoint,
    CheckpointUpdate,
    ClaimResult,
    ConsumerGroup,
    EventPosition,
    OwnershipClaim,
    PartitionOwnership,
    ReceivedEvent,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore, EventSource, PartitionReceiver
from tests.simulation.azure.rule import Decision, ObservedGroup, Record, Rule

OnEvents = Callable[[str, Sequence[ReceivedEvent]], Awaitable[None]]
"""Handles events; called with the partition id and the events."""

CHECKPOINT_EVERY_S: Final = 5.0
"""The SDKs leave checkpoints to the user's handler; this is the default of our own policy."""

EVENTS_MAX: Final = 300
WAIT_MIN_S: Final = 0.001
WAIT_MAX_S: Final = 600.0
"""Longest wait for events while there is nothing to checkpoint."""

AGAIN_LEAST_S: Final = 0.001
"""Least wait between two cycles: virtual time must pass even if cycles repeat at once."""


class Renewal(Enum):
    """Which of its own records a processor renews in a cycle."""

    ALL = "all"
    STALE = "stale"
    """Records that are older than the interval."""

    SERVED = "served"
    """Records of partitions with an open link."""


class CheckpointReading(Enum):
    """How a processor reads the start position of a partition that it has claimed."""

    ONE = "one"
    """It reads one checkpoint."""

    LIST_FOR_NEWS = "list for news"
    """It lists all checkpoints, once in each cycle that won a partition."""

    LIST_FOR_EACH = "list for each"
    """It lists all checkpoints for each partition that it has claimed."""

    LIST_ALWAYS = "list always"
    """It lists all checkpoints in each cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProfile:
    """A load-balancing rule, and the other behaviour of its client library."""

    rule: Rule
    jitter: tuple[float, float] = (1.0, 1.0)
    """Least and greatest wait between two cycles, as factors of the interval."""

    again_after: timedelta | None = None
    """Wait after a cycle that is not balanced; ``None``: the interval, as after any other."""

    renewal: Renewal = Renewal.ALL
    reading: CheckpointReading = CheckpointReading.ONE
    is_asking_for_growth: bool = False
    """Whether it reads the hub's partition ids again in each cycle."""

    is_trusting_silence: bool = False
    """Whether it treats a claim of unknown outcome as won."""

    is_claiming_blindly: bool = False
    """Whether it claims a partition without a record unconditionally, so the last writer wins."""


@dataclass(eq=False, kw_only=True)
class ForeignProcessor:
    """Serves partitions by a foreign rule. Starts and stops as an ``EventProcessor`` does."""

    source: EventSource
    store: CheckpointStore
    on_events: OnEvents
    owner_id: str
    profile: ClientProfile
    """Its rule, and the other behaviour of its client library."""

    config: EventProcessorConfig
    """Only ``load_balancing_interval`` and ``ownership_expiration`` are used."""

    rng: Random
    """Random generator for the rule and the jitter."""

    clock: Callable[[], datetime]
    """Its own wall clock, by which it computes the age of records."""

    def __post_init__(self) -> None:
        """Open nothing yet."""
        self._interval_s = self.config.load_balancing_interval.total_seconds()
        self._expiration_s = self.config.ownership_expiration.total_seconds()
        self._group = ConsumerGroup(
            fully_qualified_namespace=self.source.fully_qualified_namespace,
            eventhub_name=self.source.eventhub_name,
        )
        self._partition_ids: Sequence[str] = ()
        self._pumps: dict[str, asyncio.Task[None]] = {}
        self._cycling: asyncio.Task[None] | None = None

    @property
    def served(self) -> frozenset[str]:
        """The partitions that it reads now, whether it still owns them or not."""
        return frozenset(p for p, pump in self._pumps.items() if not pump.done())

    async def start(self) -> None:
        """Open store and source, and start the cycles.

        Raises:
            StoreError, SourceError: The store or the source does not answer.
        """
        await self.store.open()
        await self.source.open()
        self._partition_ids = await self.source.partition_ids()
        self._cycling = asyncio.create_task(self._cycle_for_ever())

    async def stop(self) -> None:
        """Cancel every pump, and release the partitions whose records name this processor."""
        if self._cycling is None:
            return
        cycling, self._cycling = self._cycling, None
        await _cancel([cycling])
        await _cancel(self._pumps.values())
        self._pumps.clear()
        with suppress(StoreError):
            snapshot = await self.store.list_ownership(self._group)
            mine = [o for o in snapshot.ownerships if o.owner_id == self.owner_id]
            await self.store.claim_ownership(
                self._group, [_claim(o.partition_id, None, o) for o in mine]
            )
        await self.source.close()
        await self.store.close()

    async def _cycle_for_ever(self) -> None:
        while True:
            is_balanced = True
            with suppress(StoreError, SourceError):  # The next cycle tries again.
                is_balanced = await self._cycle()
            if self.profile.again_after is not None and not is_balanced:
                await asyncio.sleep(max(self.profile.again_after.total_seconds(), AGAIN_LEAST_S))
            else:
                await asyncio.sleep(self._interval_s * self.rng.uniform(*self.profile.jitter))

    async def _cycle(self) -> bool:
        """Poll, decide, write, adjust the pumps; return whether the rule is balanced."""
        if self.profile.is_asking_for_growth:
            self._partition_ids = await self.source.partition_ids()
        snapshot = await self.store.list_ownership(self._group)
        stored = {o.partition_id: o for o in snapshot.ownerships}
        seen = self._seen(stored.values())
        answer = self.profile.rule(seen, self.rng)
        kept = [p for p in seen.mine if p not in answer.claims]
        renewed = self._due(kept, seen)
        claims = [_claim(p, self.owner_id, stored.get(p)) for p in [*renewed, *answer.claims]]
        results = await self._write(claims)
        lost = {r.claim.partition_id for r in results if r.outcome is WriteOutcome.LOST}
        won = {r.claim.partition_id for r in results if self._is_taken_for_won(r)}
        owned = (set(kept) - lost) | won.intersection(answer.claims)
        await self._adjust(owned, answer)
        return answer.is_balanced

    def _seen(self, stored: Iterable[PartitionOwnership]) -> ObservedGroup:
        now = self.clock()
        return ObservedGroup(
            owner_id=self.owner_id,
            partition_ids=self._partition_ids,
            records=[
                Record(
                    partition_id=o.partition_id,
                    owner_id=o.owner_id,
                    age_s=(now - o.last_modified).total_seconds(),
                )
                for o in stored
            ],
            expiration_s=self._expiration_s,
        )

    def _due(self, kept: Sequence[str], seen: ObservedGroup) -> list[str]:
        """Return which of the kept partitions to renew in this cycle."""
        match self.profile.renewal:
            case Renewal.ALL:
                return list(kept)
            case Renewal.SERVED:
                return [p for p in kept if p in self.served]
            case Renewal.STALE:
                age_s = {record.partition_id: record.age_s for record in seen.records}
                return [p for p in kept if age_s[p] > self._interval_s]

    async def _write(self, claims: Sequence[OwnershipClaim]) -> list[ClaimResult]:
        if not claims:
            return []
        results = list(await self.store.claim_ownership(self._group, claims))
        if self.profile.is_claiming_blindly:
            lost = [r for r in results if r.outcome is WriteOutcome.LOST]
            blind = [r for r in lost if r.claim.expected_etag is None and r.ownership is not None]
            results += await self._write(
                [_claim(r.claim.partition_id, self.owner_id, r.ownership) for r in blind]
            )
        return results

    def _is_taken_for_won(self, result: ClaimResult) -> bool:
        return result.outcome is WriteOutcome.WON or (
            result.outcome is WriteOutcome.UNKNOWN and self.profile.is_trusting_silence
        )

    async def _adjust(self, owned: set[str], answer: Decision) -> None:
        """Start a pump for each owned partition without one, and end the others."""
        await _cancel([self._pumps.pop(p) for p in list(self._pumps) if p not in owned])
        new = sorted(owned - self.served)
        list_counts = {
            CheckpointReading.ONE: 0,
            CheckpointReading.LIST_FOR_NEWS: 1 if new else 0,
            CheckpointReading.LIST_FOR_EACH: len(owned.intersection(answer.claims)),
            CheckpointReading.LIST_ALWAYS: 1,
        }
        for _ in range(list_counts[self.profile.reading]):
            await self.store.list_checkpoints(self._group)
        for partition_id in new:
            self._pumps[partition_id] = asyncio.create_task(self._pump(partition_id))

    async def _pump(self, partition_id: str) -> None:
        """Read a partition from its checkpoint on, until store or source fails."""
        with suppress(StoreError, SourceError):
            stored = await self.store.read_checkpoint(self._group, partition_id)
            position = EventPosition.earliest()
            if stored is not None and stored.sequence_number is not None:
                position = EventPosition.from_sequence_number(stored.sequence_number)
            receiver = await self.source.open_receiver(self._group.name, partition_id, position)
            try:
                await self._read(partition_id, receiver, stored)
            finally:
                await receiver.close()

    async def _read(
        self, partition_id: str, receiver: PartitionReceiver, stored: Checkpoint | None
    ) -> None:
        loop = asyncio.get_running_loop()
        last: ReceivedEvent | None = None
        due_at_s = float("inf")
        while True:
            wait_s = max(due_at_s - loop.time(), WAIT_MIN_S)
            wait = timedelta(seconds=min(wait_s, WAIT_MAX_S))
            events = await receiver.receive(events_max=EVENTS_MAX, wait_max=wait)
            if events:
                await self.on_events(partition_id, events)
                last = events[-1]
                due_at_s = min(due_at_s, loop.time() + CHECKPOINT_EVERY_S)
            if last is not None and loop.time() >= due_at_s:
                stored = await self._checkpoint(partition_id, last, stored)
                last, due_at_s = None, float("inf")

    async def _checkpoint(
        self, partition_id: str, event: ReceivedEvent, stored: Checkpoint | None
    ) -> Checkpoint | None:
        """Write the checkpoint unconditionally, even if it goes back."""
        while True:
            result = await self.store.update_checkpoint(
                self._group,
                CheckpointUpdate(
                    partition_id=partition_id,
                    offset=event.offset,
                    sequence_number=event.sequence_number,
                    replaces=stored,
                    writer=self.owner_id,
                    is_reset=True,
                ),
            )
            if result.outcome is not WriteOutcome.LOST:
                return result.checkpoint or stored
            stored = await self.store.read_checkpoint(self._group, partition_id)


def _claim(
    partition_id: str, owner_id: str | None, stored: PartitionOwnership | None
) -> OwnershipClaim:
    return OwnershipClaim(
        partition_id=partition_id,
        owner_id=owner_id,
        expected_etag=None if stored is None else stored.etag,
    )


async def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
