"""The steps of ``eventproc demo``: publish, start, join, kill, freeze, leave, drain, check.

Each wait polls the group and shows it. Time to balance is measured by the ownership records in the
store, moves and hand-overs by the processors' logs, and handled events by the journals, so the
results do not depend on the SDK's own statistics.
"""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from eventproc.cli.demo.children import Child
from eventproc.cli.demo.flights import Logbook, computed_directly, find_data_file, read_flights
from eventproc.cli.demo.hub import HubStage
from eventproc.cli.demo.journal import JournalReader, Range, covered, make_accounts
from eventproc.cli.demo.processors.fleet import Fleet
from eventproc.cli.demo.processors.movements import (
    count_hand_overs,
    count_moves,
    first_start,
    read_logs,
    serving,
)
from eventproc.cli.demo.processors.report import Report
from eventproc.cli.demo.processors.scene import (
    Change,
    ChangeKind,
    PartitionScene,
    ProcessorScene,
    Scene,
    fewest_moves,
    is_balanced,
)
from eventproc.concurrency.tasks import retrieve_outcome

POLL_INTERVAL_S: Final = 0.15
BALANCED_FOR_S: Final = 1.5
"""A group counts as balanced if it stays so for longer than the processors' poll interval."""

BALANCE_MAX_S: Final = 45.0
IDLE_MAX_S: Final = 30.0
BACKLOG_SHARE: Final = 0.2
ABRUPT: Final = frozenset({ChangeKind.KILL, ChangeKind.FREEZE})
"""Changes after which a processor cannot store its progress, so events are delivered again."""

STREAM_S: Final = 40.0
"""In how many seconds the rest of the events is published: about as long as the changes take."""


def _headline(kind: ChangeKind, names: list[str]) -> str:
    subject, s = " and ".join(names), "s" if len(names) == 1 else ""
    return {
        ChangeKind.START: f"{subject} start{s}, and will own every partition",
        ChangeKind.JOIN: f"{subject} join{s}",
        ChangeKind.KILL: f"{subject} is killed (SIGKILL), without notice",
        ChangeKind.FREEZE: f"{subject} is frozen (SIGSTOP), as on a suspended machine",
        ChangeKind.THAW: f"{subject} continues (SIGCONT), after its leases have expired",
        ChangeKind.LEAVE: f"{subject} leave{s} gracefully (SIGTERM)",
    }[kind]


class DemoRun:
    """Runs the demo, and shows its state all the time."""

    def __init__(
        self,
        stage: HubStage,
        *,
        event_count: int,
        processor_count: int,
        show: Callable[[Scene], None],
    ) -> None:
        self._stage = stage
        self._event_count = event_count
        self._processor_count = processor_count
        self._show = show
        self._fleet = Fleet(stage)
        self._partition_ids = stage.partition_ids
        self._owners: dict[str, str | None] = dict.fromkeys(self._partition_ids)
        self._journal = JournalReader(stage.folder)
        self._handled: dict[str, list[Range]] = {p: [] for p in self._partition_ids}
        self._deliveries: list[tuple[str, str, Range]] = []
        self._delivered: Counter[str] = Counter()
        self._ends = dict.fromkeys(self._partition_ids, -1)
        self._asked = 0
        self._headline = ""
        self._changes: list[Change] = []
        self._publisher: Child | None = None

    async def play(self) -> Report:
        """Run the demo, and return its report.

        Raises:
            ChildFailedError: A process failed.
        """
        truth = asyncio.ensure_future(asyncio.to_thread(self._truth))
        truth.add_done_callback(retrieve_outcome)  # It is not awaited if the demo fails.
        await self._publish_backlog()
        await self._change(ChangeKind.START, 1)
        await self._change(ChangeKind.JOIN, self._processor_count - 1)
        await self._change(ChangeKind.JOIN, 1)
        await self._change(ChangeKind.KILL, 1)
        if hasattr(signal, "SIGSTOP"):
            await self._change(ChangeKind.FREEZE, 1)
            await self._change(ChangeKind.THAW, 1)
        await self._change(ChangeKind.LEAVE, 1)
        published = await self._drain()
        self._headline = "everything is handled: the processes stop"
        stopping_at = datetime.now(UTC)
        problems = await self._fleet.stop()
        await self._poll()
        return await self._report(published, await truth, stopping_at, problems)

    def _truth(self) -> Logbook:
        return computed_directly(read_flights(find_data_file(), self._event_count))

    # Observing.

    async def _poll(self) -> None:
        """Read the state of the group, and show it."""
        await asyncio.sleep(POLL_INTERVAL_S)
        self._fleet.check()
        for child in self._stage.children:
            if child.name in {"emulator", "publisher"}:
                child.check()
        stage = self._stage
        snapshot = await stage.store.list_ownership(stage.group)
        self._owners |= {o.partition_id: o.owner_id for o in snapshot.ownerships}
        members = {m.owner_id for m in (await stage.store.list_members(stage.group)).members}
        for name in members | set(filter(None, self._owners.values())):
            self._fleet.seen(name)
        for name, partition_id, run in self._journal.read():
            self._deliveries.append((name, partition_id, run))
            self._handled[partition_id].append(run)
            self._delivered[name] += run[1] - run[0] + 1
        await self._ask_one_end()
        self._show(self._scene())

    async def _ask_one_end(self) -> None:
        """Ask the hub for the end of one partition, in turn, to send it few requests."""
        partition_id = self._partition_ids[self._asked % len(self._partition_ids)]
        self._asked += 1
        found = await self._stage.source.partition_properties(partition_id)
        self._ends[partition_id] = found.last_enqueued_sequence_number

    def _handled_count(self, partition_id: str) -> int:
        return covered(self._handled[partition_id])

    def _scene(self) -> Scene:
        partitions = tuple(
            PartitionScene(
                partition_id=p,
                owner_id=self._owners[p],
                handled=(handled := self._handled_count(p)),
                published=max(handled, self._ends[p] + 1),
            )
            for p in self._partition_ids
        )
        handled = sum(row.handled for row in partitions)
        return Scene(
            elapsed_s=self._stage.elapsed_s,
            headline=self._headline,
            total=self._event_count,
            published=max(handled, self._stage.published()),
            handled=handled,
            partitions=partitions,
            processors=tuple(
                ProcessorScene(name=name, pid=pid, fate=fate, delivered=self._delivered[name])
                for name, pid, fate in self._fleet.fates()
            ),
            changes=tuple(self._changes),
        )

    # Acting.

    async def _publish_backlog(self) -> None:
        total = self._event_count
        backlog = int(total * BACKLOG_SHARE)
        self._headline = f"publishing {backlog:,} flights before the first processor starts"
        self._publisher = self._stage.start_publisher(
            total, backlog=backlog, rate=(total - backlog) / STREAM_S
        )
        while self._stage.published() < backlog:
            await self._poll()

    def _busiest(self) -> str:
        """Return the live processor with the most partitions."""
        counts = Counter(owner for owner in self._owners.values() if owner is not None)
        return max(self._fleet.live, key=lambda name: (counts[name], name))

    async def _change(self, kind: ChangeKind, count: int) -> None:
        """Make a change, and wait until the group is balanced and stays so."""
        before, began_at = dict(self._owners), datetime.now(UTC)
        names = await self._act(kind, count)
        self._headline = _headline(kind, names)
        if kind in {ChangeKind.START, ChangeKind.JOIN}:
            counted_from = await self._until_ready(names)
        else:
            counted_from = datetime.now(UTC)
        live = self._fleet.live
        change = Change(
            kind=kind,
            processors=", ".join(names),
            began_at=began_at,
            moves_minimum=fewest_moves(before, live),
        )
        self._changes.append(change)
        began_s, balanced_s = time.monotonic(), None
        while time.monotonic() - began_s < BALANCE_MAX_S:
            if not is_balanced(self._owners, live):
                balanced_s = None
            elif balanced_s is None:
                balanced_s = time.monotonic()
                took_s = round((datetime.now(UTC) - counted_from).total_seconds(), 2)
                self._changes[-1] = replace(change, seconds_to_balance=took_s)
            elif time.monotonic() - balanced_s >= BALANCED_FOR_S and self._is_served():
                return
            await self._poll()
        self._changes[-1] = change

    def _is_served(self) -> bool:
        """Whether every owner has started its partitions, which follows its claim.

        Otherwise these starts would count as moves of the next change.
        """
        return serving(read_logs(self._fleet.logs_of())) == self._owners

    async def _act(self, kind: ChangeKind, count: int) -> list[str]:
        if kind in {ChangeKind.START, ChangeKind.JOIN}:
            return [self._fleet.start() for _ in range(count)]
        if kind is ChangeKind.THAW:
            return [self._fleet.thaw()]
        name = self._busiest()
        if kind is ChangeKind.KILL:
            self._fleet.kill(name)
        elif kind is ChangeKind.FREEZE:
            await self._freeze(name)
        else:
            self._fleet.ask_to_leave(name)
        return [name]

    async def _freeze(self, name: str) -> None:
        """Freeze a processor, but not during a write to SQLite, which would block all others."""
        self._fleet.freeze(name)
        while await asyncio.to_thread(self._stage.is_file_locked):
            self._fleet.thaw()
            await self._poll()
            self._fleet.freeze(name)

    async def _until_ready(self, names: list[str]) -> datetime:
        """Wait until one of them has started; return the time of its start."""
        while True:
            await self._poll()
            ready_at = first_start(read_logs(self._fleet.logs_of(names)))
            if ready_at is not None:
                return ready_at

    async def _drain(self) -> dict[str, Range]:
        """Publish the rest, and wait until all is handled or there is no progress any more."""
        self._headline = "the rest is published and handled"
        assert self._publisher is not None
        self._publisher.send_line("hurry")
        while self._publisher.exit_code is None:
            await self._poll()
        self._publisher.check()
        published: dict[str, Range] = {}
        for partition_id in self._partition_ids:
            found = await self._stage.source.partition_properties(partition_id)
            self._ends[partition_id] = found.last_enqueued_sequence_number
            if not found.is_empty:
                published[partition_id] = (
                    found.beginning_sequence_number,
                    found.last_enqueued_sequence_number,
                )
        await self._until_handled(sum(last - first + 1 for first, last in published.values()))
        return published

    async def _until_handled(self, count: int) -> None:
        best, progress_s = -1, time.monotonic()
        while time.monotonic() - progress_s < IDLE_MAX_S:
            handled = sum(self._handled_count(p) for p in self._partition_ids)
            if handled >= count:
                return
            if handled > best:
                best, progress_s = handled, time.monotonic()
            await self._poll()

    # Reporting.

    async def _report(
        self,
        published: dict[str, Range],
        truth: Logbook,
        stopping_at: datetime,
        problems: list[str],
    ) -> Report:
        stage = self._stage
        logbook = await stage.stored_logbook()
        accounts = make_accounts(published, [(p, run) for _, p, run in self._deliveries])
        abrupt = {change.processors for change in self._changes if change.kind in ABRUPT}
        by_others = [(p, run) for name, p, run in self._deliveries if name not in abrupt]
        events = await asyncio.to_thread(read_logs, self._fleet.logs_of())
        moves = count_moves(
            [event for event in events if event.at < stopping_at],
            [change.began_at for change in self._changes],
        )
        changes = tuple(
            replace(change, moves=count) for change, count in zip(self._changes, moves, strict=True)
        )
        sent = stage.published()
        if accounts.published != sent:
            problems.append(f"the publisher sent {sent} events, the hub has {accounts.published}")
        problems += [
            f"after '{change.kind}' the group was not balanced within {BALANCE_MAX_S:.0f} s"
            for change in changes
            if change.seconds_to_balance is None
        ]
        return Report(
            accounts=accounts,
            duplicates_unexplained=make_accounts(published, by_others).duplicates,
            handovers=count_hand_overs(events, before=stopping_at),
            changes=changes,
            logbook=logbook,
            truth=truth,
            seconds=stage.elapsed_s,
            store=stage.note.name,
            partition_count=len(self._partition_ids),
            problems=tuple(problems),
        )
