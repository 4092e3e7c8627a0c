"""One partition's checkpoint, and checkpointers of several owners that contend for it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from math import inf
from typing import Any

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import CheckpointPolicy, StoreError, StoreUnavailableError
from eventproc._base.logs import get_logger
from eventproc._core.delivery.progress import PartitionProgress
from eventproc._delivery.adoption import Adoption
from eventproc._delivery.checkpointer import Checkpointer, CheckpointRecord, Write
from eventproc._delivery.config import RecreatedHub
from eventproc._delivery.scope import PartitionIdentity, PartitionScope
from eventproc._group.pumps.stop_scope import StopScope
from eventproc.models import Checkpoint, CheckpointResult, CheckpointUpdate, WriteOutcome
from eventproc.models._statistics import DeliveryCounters
from tests.scenarios.group_setup import Setup

MANUAL = CheckpointPolicy.manual()
EAGER = CheckpointPolicy(max_events=1, max_uncommitted_events=10)
LOG = get_logger("eventproc.test")


async def _ignore(error: StoreError, count: int) -> None:
    """Tell no handler."""


class CheckpointFixture:
    """One partition's checkpoint, and the checkpointers that contend for it."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.store = MemoryCheckpointStore(setup.account)
        self.owner = "a"
        self.before_verify: Callable[[], object] = lambda: None
        self.unanswered_count = 0
        self.is_failing = False
        self.read_error: StoreError | None = None
        self.write_error: StoreError = StoreUnavailableError("no answer")
        self.read_count = 0
        self.verify_count = 0
        self.written_at_s: list[float] = []
        """When each write that was won took effect."""

        self.attempts: list[int] = []
        """The number of each attempt that was followed by a wait."""

        self.write_s = 0.0
        self.in_flight_count = 0
        self.in_flight_count_max = 0
        self.write: Write = self._carry_out_anyway
        """What each checkpointer writes with."""

        self._pump_count = 0

    def checkpointer(self, owner: str, policy: CheckpointPolicy = MANUAL) -> Checkpointer:
        """A new checkpointer of this owner."""
        return Checkpointer(
            self.record(owner),
            PartitionProgress(),
            policy=policy,
            wait_s=self.wait_s,
            log=LOG,
        )

    def record(self, owner: str) -> CheckpointRecord:
        """The record as a new pump of this owner reads and writes it."""

        async def verify() -> bool:
            self.verify_count += 1
            is_owner = self.owner == owner
            result = self.before_verify()
            if asyncio.iscoroutine(result):
                await result
            return is_owner

        self._pump_count += 1
        return CheckpointRecord(
            partition_id="0",
            writer=f"{owner}/1/{self._pump_count}",
            read=self._read,
            write=self._write,
            verify=verify,
        )

    def adoption(
        self,
        checkpointer: Checkpointer,
        *,
        is_from_first: bool = False,
        hub_created_at: Callable[[], datetime | None] = lambda: None,
        stop: StopScope | None = None,
        wait_s: Callable[[int], float] | None = None,
        report: Callable[[StoreError, int], Awaitable[None]] = _ignore,
    ) -> Adoption:
        """The adoption of the checkpoint by this checkpointer's pump."""
        scope = PartitionScope(
            identity=PartitionIdentity(partition_id="0", group=self.setup.group, owner_id="a"),
            stop=stop or StopScope(lambda: inf),
            counters=DeliveryCounters(),
            log=LOG,
        )
        return Adoption(
            checkpointer,
            scope=scope,
            is_from_first=is_from_first,
            hub_created_at=hub_created_at,
            recreated_hub=RecreatedHub.STOP,
            wait_s=wait_s or self.wait_s,
            report=report,
        )

    async def adopt(
        self, checkpointer: Checkpointer, *, is_from_first: bool = False
    ) -> Checkpoint | None:
        """Adopt the checkpoint once; raise what that raises."""
        return await self.adoption(checkpointer, is_from_first=is_from_first).attempt()

    async def store_by(self, writer: str, number: int, **fields: Any) -> None:
        """Replace the stored checkpoint, as another program does; *fields* as of an update."""
        update = CheckpointUpdate(
            partition_id="0",
            offset=fields.pop("offset", str(number)),
            sequence_number=number,
            replaces=self.setup.checkpoint(),
            writer=writer,
            **fields,
        )
        await self.store.update_checkpoint(self.setup.group, update)

    def wait_s(self, attempt: int) -> float:
        self.attempts.append(attempt)
        return float(attempt)

    async def _read(self) -> Checkpoint | None:
        self.read_count += 1
        if self.read_error is not None:
            raise self.read_error
        return await self.store.read_checkpoint(self.setup.group, "0")

    async def _write(self, update: CheckpointUpdate) -> CheckpointResult:
        return await self.write(update)

    async def _carry_out_anyway(self, update: CheckpointUpdate) -> CheckpointResult:
        # As with the store's own thread: a cancelled caller does not stop the write.
        return await asyncio.shield(asyncio.ensure_future(self._carry_out(update)))

    async def _carry_out(self, update: CheckpointUpdate) -> CheckpointResult:
        self.in_flight_count += 1
        self.in_flight_count_max = max(self.in_flight_count, self.in_flight_count_max)
        try:
            await asyncio.sleep(self.write_s)
            if self.is_failing:
                raise self.write_error
            result = await self.store.update_checkpoint(self.setup.group, update)
        finally:
            self.in_flight_count -= 1
        if result.outcome is WriteOutcome.WON:
            self.written_at_s.append(asyncio.get_running_loop().time())
        if self.unanswered_count == 0:
            return result
        self.unanswered_count -= 1
        return CheckpointResult(outcome=WriteOutcome.UNKNOWN)


def handle(checkpointer: Checkpointer, number: int) -> None:
    """Note one more handled event."""
    checkpointer.progress.advance(number, str(number))
    checkpointer.note(1)


async def write(checkpointer: Checkpointer, number: int) -> None:
    """Note progress, and wait until it is stored."""
    handle(checkpointer, number)
    await checkpointer.flush()


def writer_of(setup: Setup) -> str | None:
    """The writer that the stored checkpoint names."""
    checkpoint = setup.checkpoint()
    return None if checkpoint is None else checkpoint.writer


async def former_and_next(setup: Setup) -> tuple[CheckpointFixture, Checkpointer, Checkpointer]:
    """Return two owners' checkpointers: one has written once, the other has not adopted yet."""
    fixture = CheckpointFixture(setup)
    await fixture.store.open()
    former, following = fixture.checkpointer("a"), fixture.checkpointer("b")
    await fixture.adopt(former)
    await write(former, 5)
    return fixture, former, following


@asynccontextmanager
async def writing(checkpointer: Checkpointer) -> AsyncIterator[None]:
    """Run the checkpointer in the background, as a pump does."""
    task = asyncio.create_task(checkpointer.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
