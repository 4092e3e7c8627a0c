"""The steps of ``eventproc demo-spark``: publish, start queries, kill an executor, drain, check.

Handled events are counted in the handlers' journals, and positions are read from the store, so the
results do not depend on Spark's or the SDK's own statistics.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from eventproc.cli.demo.children import Child
from eventproc.cli.demo.flights import Logbook, find_data_file, read_flights
from eventproc.cli.demo.flights import computed_directly as logbook_of
from eventproc.cli.demo.hub import HubStage
from eventproc.cli.demo.journal import JournalReader, Range, make_accounts
from eventproc.cli.demo.spark import executors
from eventproc.cli.demo.spark.cluster import Cluster
from eventproc.cli.demo.spark.report import Report
from eventproc.cli.demo.spark.scene import ExecutorScene, PartitionScene, Scene
from eventproc.cli.demo.spark.weeks import Weeks
from eventproc.cli.demo.spark.weeks import computed_directly as weeks_of

POLL_INTERVAL_S: Final = 0.4
IDLE_MAX_S: Final = 300.0
"""The demo fails after this time without progress."""

AT_WORK_MAX_S: Final = 10.0
"""How long to wait for a batch to be under way before an executor is killed."""

STREAM_S: Final = 15.0
"""In how many seconds the second half of the flights is published."""


class DemoRun:
    """Runs the demo, and shows its state all the time."""

    def __init__(
        self,
        stage: HubStage,
        cluster: Cluster,
        *,
        event_count: int,
        show: Callable[[Scene], None],
    ) -> None:
        self._stage = stage
        self._cluster = cluster
        self._event_count = event_count
        self._show = show
        self._partition_ids = stage.partition_ids
        self._ends = dict.fromkeys(self._partition_ids, -1)
        self._positions = dict.fromkeys(self._partition_ids, -1)
        self._fates: dict[int, str] = {}
        self._killed = 0
        self._batch_count = 0
        self._truth: tuple[Weeks, Logbook] = ({}, Logbook())
        self._headline = ""
        self._journal = JournalReader(stage.folder)
        self._handled: list[tuple[str, Range]] = []

    async def play(self) -> Report:
        """Run the demo, and return its report.

        Raises:
            ChildFailedError: A process failed.
            QueryFailedError: A query failed.
        """
        total = self._event_count
        self._truth = await asyncio.to_thread(self._compute)
        self._headline = f"publishing {total // 2:,} flights, then the rest at a steady rate"
        publisher = self._stage.start_publisher(
            total, backlog=total // 2, rate=total / 2 / STREAM_S
        )
        await self._until(lambda: self._stage.published() >= total // 4, publisher)
        self._headline = "two queries on two executors: an aggregate by week, and a handler"
        await asyncio.to_thread(self._cluster.start)
        await self._until(lambda: self._committed() >= total // 2, publisher)
        await self._until_at_work()
        self._kill_one()
        await self._until(lambda: publisher.exit_code is not None, publisher)
        await self._read_ends()
        await self._until(lambda: self._positions == self._ends, publisher)
        await self._until(lambda: self._scene().aggregated >= total, publisher)
        self._headline = "everything is handled: the queries stop"
        await self._poll()
        await asyncio.to_thread(self._cluster.stop)
        return await self._report()

    def _compute(self) -> tuple[Weeks, Logbook]:
        flights = list(read_flights(find_data_file(), self._event_count))
        return weeks_of(flights), logbook_of(flights)

    def _committed(self) -> int:
        return sum(self._positions.values()) + len(self._positions)

    def _kill_one(self) -> None:
        self._killed = max(pid for pid, fate in self._fates.items() if fate == "running")
        executors.kill(self._killed)
        self._fates[self._killed] = "killed"
        self._headline = f"executor {self._killed} is killed (SIGKILL) during a batch"

    async def _until(self, is_so: Callable[[], bool], publisher: Child) -> None:
        """Poll until it is so, or until nothing changes: the report then says what is missing."""
        before, progress_s = None, time.monotonic()
        while not is_so() and time.monotonic() - progress_s < IDLE_MAX_S:
            publisher.check()
            await self._poll()
            now = (self._stage.published(), self._committed(), self._scene().aggregated)
            if now != before:
                before, progress_s = now, time.monotonic()

    async def _until_at_work(self) -> None:
        """Wait until handlers have handled events after the last checkpoints."""
        give_up_s = time.monotonic() + AT_WORK_MAX_S
        while time.monotonic() < give_up_s:
            await asyncio.sleep(POLL_INTERVAL_S / 10)
            await self._read_positions()
            self._handled += [(p, run) for _, p, run in self._journal.read()]
            if any(last > self._positions[p] for p, (_, last) in self._handled):
                return

    # Observing.

    async def _poll(self) -> None:
        """Read the state of group and executors, and show it."""
        await asyncio.sleep(POLL_INTERVAL_S)
        await self._read_positions()
        await self._read_ends()
        self._batch_count = await asyncio.to_thread(self._cluster.batch_count)
        alive = executors.executors()
        for pid in self._fates.keys() - set(alive):
            if self._fates[pid] == "running":
                self._fates[pid] = "ended"
        self._fates = dict.fromkeys(alive, "running") | self._fates
        self._show(self._scene())

    async def _read_positions(self) -> None:
        self._positions |= await self._stage.positions()

    async def _read_ends(self) -> None:
        for found in await self._stage.source.properties_of(self._partition_ids):
            self._ends[found.partition_id] = found.last_enqueued_sequence_number

    def _scene(self) -> Scene:
        weeks, _ = self._truth
        return Scene(
            elapsed_s=self._stage.elapsed_s,
            headline=self._headline,
            total=self._event_count,
            published=self._stage.published(),
            batches=self._batch_count,
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

    # Reporting.

    async def _report(self) -> Report:
        stage = self._stage
        logbook = await stage.stored_logbook()
        positions = await stage.positions()
        at_end = sum(positions.get(p, -1) == self._ends[p] for p in self._partition_ids)
        published: dict[str, Range] = {p: (0, end) for p, end in self._ends.items() if end >= 0}
        self._handled += [(p, run) for _, p, run in self._journal.read()]
        accounts = make_accounts(published, self._handled)
        problems = []
        if accounts.published != self._event_count:
            problems.append(
                f"{self._event_count} flights were to be published, the hub has "
                f"{accounts.published}"
            )
        weeks_truth, logbook_truth = self._truth
        return Report(
            accounts=accounts,
            weeks=self._cluster.weeks,
            weeks_truth=weeks_truth,
            logbook=logbook,
            truth=logbook_truth,
            partition_count=len(self._partition_ids),
            at_end_count=at_end,
            batch_count=self._batch_count,
            killed=self._killed,
            store=stage.note.name,
            seconds=stage.elapsed_s,
            problems=tuple(problems),
        )
