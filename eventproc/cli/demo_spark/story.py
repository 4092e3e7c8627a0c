"""The demo from beginning to end: publish, run both queries, kill an executor, drain, check.

What was handled is told by journals that the handlers write beside the SDK; where checkpoints
stand is read from the store.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from eventproc.cli.demo.children import Child
from eventproc.cli.demo.flights import Logbook, find_data_file, read_flights
from eventproc.cli.demo.flights import computed_directly as logbook_of
from eventproc.cli.demo.journal import JournalReader, Range, make_accounts
from eventproc.cli.demo.stage import Stage
from eventproc.cli.demo_spark import executors
from eventproc.cli.demo_spark.cluster import Batches, Cluster
from eventproc.cli.demo_spark.report import Report
from eventproc.cli.demo_spark.scene import ExecutorScene, PartitionScene, Scene
from eventproc.cli.demo_spark.weeks import Weeks
from eventproc.cli.demo_spark.weeks import computed_directly as weeks_of

LOOK_EVERY_S: Final = 0.4
IDLE_MAX_S: Final = 300.0
"""Without any progress for so long, the demo has failed."""

AT_WORK_MAX_S: Final = 10.0
"""A batch is under way most of the time."""

STREAM_S: Final = 15.0
"""For how long the second half of the flights is spread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """What shall happen."""

    event_count: int
    partition_count: int

    @property
    def events_per_batch(self) -> int:
        """So many that there are several batches before and after the kill."""
        return max(100, self.event_count // 10)


class Story:
    """Plays the demo, and shows every moment of it."""

    def __init__(
        self,
        stage: Stage,
        cluster: Cluster,
        plot: Plot,
        *,
        begun_s: float,
        show: Callable[[Scene], None],
    ) -> None:
        self._stage = stage
        self._cluster = cluster
        self._plot = plot
        self._show = show
        self._begun_s = begun_s
        self._partition_ids = [str(number) for number in range(plot.partition_count)]
        self._ends = dict.fromkeys(self._partition_ids, -1)
        self._positions = dict.fromkeys(self._partition_ids, -1)
        self._fates: dict[int, str] = {}
        self._killed = 0
        self._batches = Batches(count=0, rows=0)
        self._truth: tuple[Weeks, Logbook] = ({}, Logbook())
        self._headline = ""
        self._journal = JournalReader(stage.folder)
        self._handled: list[tuple[str, Range]] = []

    async def play(self) -> Report:
        """Play it, and report.

        Raises:
            ChildFailedError: A process ended that should not have.
            QueryFailedError: Spark did not get over it.
        """
        total = self._plot.event_count
        self._truth = await asyncio.to_thread(self._compute)
        self._headline = f"publishing {total // 2:,} flights, and then the rest bit by bit"
        publisher = self._stage.start_publisher(
            total, backlog=total // 2, rate=total / 2 / STREAM_S
        )
        await self._until(lambda: self._stage.published() >= total // 4, publisher)
        self._headline = "two queries on two executors: flights by week, and a handler for each"
        await asyncio.to_thread(self._cluster.start)
        await self._until(lambda: self._committed() >= total // 2, publisher)
        await self._until_at_work()
        self._kill_one()
        await self._until(lambda: publisher.exit_code is not None, publisher)
        await self._see_ends()
        await self._until(lambda: self._positions == self._ends, publisher)
        await self._until(lambda: self._scene().aggregated >= total, publisher)
        self._headline = "everything is handled: the queries stop"
        await self._look()
        await asyncio.to_thread(self._cluster.stop)
        return await self._report()

    def _compute(self) -> tuple[Weeks, Logbook]:
        flights = list(read_flights(find_data_file(), self._plot.event_count))
        return weeks_of(flights), logbook_of(flights)

    def _committed(self) -> int:
        return sum(self._positions.values()) + len(self._positions)

    def _kill_one(self) -> None:
        self._killed = max(pid for pid, fate in self._fates.items() if fate == "running")
        executors.kill(self._killed)
        self._fates[self._killed] = "killed"
        self._headline = f"executor {self._killed} is killed (SIGKILL) in the middle of its work"

    async def _until(self, is_so: Callable[[], bool], publisher: Child) -> None:
        """Look until it is so, or until nothing moves: then the report tells what is missing."""
        before, moved_s = None, time.monotonic()
        while not is_so() and time.monotonic() - moved_s < IDLE_MAX_S:
            publisher.check()
            await self._look()
            now = (self._stage.published(), self._committed(), self._scene().aggregated)
            if now != before:
                before, moved_s = now, time.monotonic()

    async def _until_at_work(self) -> None:
        """Return when handlers have had events that no checkpoint covers yet."""
        give_up_s = time.monotonic() + AT_WORK_MAX_S
        while time.monotonic() < give_up_s:
            await asyncio.sleep(LOOK_EVERY_S / 10)
            await self._see_checkpoints()
            self._handled += [(p, run) for _, p, run in self._journal.read()]
            if any(last > self._positions[p] for p, (_, last) in self._handled):
                return

    # Looking.

    async def _look(self) -> None:
        """See how everything is, and show it."""
        await asyncio.sleep(LOOK_EVERY_S)
        await self._see_checkpoints()
        await self._see_ends()
        self._batches = await asyncio.to_thread(self._cluster.batches)
        alive = executors.executors()
        for pid in self._fates.keys() - set(alive):
            if self._fates[pid] == "running":
                self._fates[pid] = "ended"
        self._fates = dict.fromkeys(alive, "running") | self._fates
        self._show(self._scene())

    async def _see_checkpoints(self) -> None:
        stage = self._stage
        for checkpoint in await stage.store.list_checkpoints(stage.group):
            if checkpoint.sequence_number is not None:
                self._positions[checkpoint.partition_id] = checkpoint.sequence_number

    async def _see_ends(self) -> None:
        for found in await self._stage.source.properties_of(self._partition_ids):
            self._ends[found.partition_id] = found.last_enqueued_sequence_number

    def _scene(self) -> Scene:
        weeks, _ = self._truth
        return Scene(
            elapsed_s=time.monotonic() - self._begun_s,
            headline=self._headline,
            total=self._plot.event_count,
            published=self._stage.published(),
            batches=self._batches.count,
            partitions=[
                PartitionScene(
                    partition_id=p,
                    published=self._ends[p] + 1,
                    committed=self._positions[p] + 1,
                )
                for p in self._partition_ids
            ],
            executors=[ExecutorScene(pid=p, fate=self._fates[p]) for p in sorted(self._fates)],
            week_names=sorted({week for week, _ in weeks}),
            weeks=dict(self._cluster.weeks),
        )

    # Judging.

    async def _report(self) -> Report:
        stage, logbook = self._stage, Logbook()
        at_end = 0
        for partition_id in self._partition_ids:
            checkpoint = await stage.store.read_checkpoint(stage.group, partition_id)
            if checkpoint is not None and checkpoint.state:
                logbook.take_in(checkpoint.state)
            position = -1 if checkpoint is None else checkpoint.sequence_number
            at_end += position == self._ends[partition_id]
        published: dict[str, Range] = {p: (0, end) for p, end in self._ends.items() if end >= 0}
        self._handled += [(p, run) for _, p, run in self._journal.read()]
        accounts = make_accounts(published, self._handled)
        problems = []
        if accounts.published != self._plot.event_count:
            problems.append(
                f"{self._plot.event_count} flights were to be published, the hub has "
                f"{accounts.published}"
            )
        weeks_truth, logbook_truth = self._truth
        return Report(
            accounts=accounts,
            weeks=self._cluster.weeks,
            weeks_truth=weeks_truth,
            logbook=logbook,
            logbook_truth=logbook_truth,
            partition_count=len(self._partition_ids),
            at_end_count=at_end,
            batch_count=self._batches.count,
            killed=self._killed,
            store=stage.note.name,
            seconds=time.monotonic() - self._begun_s,
            problems=tuple(problems),
        )
