"""The demo from beginning to end: publish, start, join, kill, leave, drain, check.

One loop looks at the group and shows it; everything else waits by looking. Time to balance is
taken from the ownership records in the store, moves and hand-overs from the processors' logs, and
what was handled from the journals: three witnesses, none of which is the SDK's own opinion.
"""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from eventproc.cli.demo.children import Child
from eventproc.cli.demo.fleet import Fleet
from eventproc.cli.demo.flights import Logbook, computed_directly, find_data_file, read_flights
from eventproc.cli.demo.journal import JournalReader, Range, covered, make_accounts
from eventproc.cli.demo.movements import (
    count_hand_overs,
    count_moves,
    first_start,
    read_logs,
)
from eventproc.cli.demo.report import Report
from eventproc.cli.demo.scene import (
    Change,
    ChangeKind,
    PartitionScene,
    ProcessorScene,
    Scene,
    fewest_moves,
    is_balanced,
)
from eventproc.cli.demo.stage import Stage

LOOK_EVERY_S: Final = 0.15
STAYS_S: Final = 1.5
"""A balance counts when it stays for longer than any processor takes between two looks."""

BALANCE_MAX_S: Final = 45.0
IDLE_MAX_S: Final = 30.0
BACKLOG_SHARE: Final = 0.2
CUT_OFF: Final = frozenset({ChangeKind.KILL, ChangeKind.FREEZE})
"""What keeps a processor from storing what it did: then events come again."""

STREAM_S: Final = 40.0
"""For how long the rest of the events is spread: about what the changes take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """What shall happen."""

    event_count: int
    processor_count: int
    partition_count: int


def _headline(kind: ChangeKind, names: list[str]) -> str:
    who, s = " and ".join(names), "s" if len(names) == 1 else ""
    return {
        ChangeKind.START: f"{who} start{s}, and has everything",
        ChangeKind.JOIN: f"{who} join{s}",
        ChangeKind.KILL: f"{who} is killed (SIGKILL): nobody is told",
        ChangeKind.FREEZE: f"{who} is frozen (SIGSTOP), as a suspended machine is",
        ChangeKind.THAW: f"{who} goes on (SIGCONT), and does not know that it was away",
        ChangeKind.LEAVE: f"{who} leave{s} in good order (SIGTERM)",
    }[kind]


class Story:
    """Plays the demo on a stage, and shows every moment of it."""

    def __init__(
        self, stage: Stage, plot: Plot, *, begun_s: float, show: Callable[[Scene], None]
    ) -> None:
        self._stage = stage
        self._plot = plot
        self._show = show
        self._begun_s = begun_s
        self._fleet = Fleet(stage)
        self._partition_ids = tuple(str(index) for index in range(plot.partition_count))
        self._owners: dict[str, str | None] = dict.fromkeys(self._partition_ids)
        self._journal = JournalReader(stage.folder)
        self._handled: dict[str, list[Range]] = {p: [] for p in self._partition_ids}
        self._deliveries: list[tuple[str, str, Range]] = []
        self._delivered: Counter[str] = Counter()
        self._ends = dict.fromkeys(self._partition_ids, -1)
        self._positions = dict.fromkeys(self._partition_ids, -1)
        self._asked = 0
        self._headline = ""
        self._changes: list[Change] = []
        self._publisher: Child | None = None

    async def play(self) -> Report:
        """Play it, and report.

        Raises:
            ChildFailedError: A process ended that should not have.
        """
        plot = self._plot
        truth = asyncio.ensure_future(asyncio.to_thread(self._truth))
        await self._publish_backlog()
        await self._change(ChangeKind.START, 1)
        await self._change(ChangeKind.JOIN, plot.processor_count - 1)
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
        await self._look()
        return await self._report(published, await truth, stopping_at, problems)

    def _truth(self) -> Logbook:
        return computed_directly(read_flights(find_data_file(), self._plot.event_count))

    # Looking.

    async def _look(self) -> None:
        """See how everything is, and show it."""
        await asyncio.sleep(LOOK_EVERY_S)
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
        for checkpoint in await stage.store.list_checkpoints(stage.group):
            if checkpoint.sequence_number is not None:
                self._positions[checkpoint.partition_id] = checkpoint.sequence_number
        for name, partition_id, run in self._journal.read():
            self._deliveries.append((name, partition_id, run))
            self._handled[partition_id].append(run)
            self._delivered[name] += run[1] - run[0] + 1
        await self._ask_one_end()
        self._show(self._scene())

    async def _ask_one_end(self) -> None:
        """Ask the hub where one partition ends, each in its turn: it is not made to be polled."""
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
                checkpointed=self._positions[p] + 1,
            )
            for p in self._partition_ids
        )
        handled = sum(row.handled for row in partitions)
        return Scene(
            elapsed_s=time.monotonic() - self._begun_s,
            headline=self._headline,
            total=self._plot.event_count,
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
        total = self._plot.event_count
        backlog = int(total * BACKLOG_SHARE)
        self._headline = f"publishing {backlog:,} flights before anybody listens"
        self._publisher = self._stage.start_publisher(
            total, backlog=backlog, rate=(total - backlog) / STREAM_S
        )
        while self._stage.published() < backlog:
            await self._look()

    def _busiest(self) -> str:
        """The living processor that owns most, so that its loss is felt."""
        counts = Counter(owner for owner in self._owners.values() if owner is not None)
        return max(self._fleet.live, key=lambda name: (counts[name], name))

    async def _change(self, kind: ChangeKind, count: int) -> None:
        """Let something happen, and wait until the group is balanced and stays so."""
        before, began_at = dict(self._owners), datetime.now(UTC)
        names = await self._act(kind, count)
        self._headline = _headline(kind, names)
        if kind in {ChangeKind.START, ChangeKind.JOIN}:
            felt_at = await self._until_ready(names)
        else:
            felt_at = datetime.now(UTC)
        live = self._fleet.live
        change = Change(
            kind=kind,
            who=", ".join(names),
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
                took_s = round((datetime.now(UTC) - felt_at).total_seconds(), 2)
                self._changes[-1] = replace(change, seconds_to_balance=took_s)
            elif time.monotonic() - balanced_s >= STAYS_S:
                return
            await self._look()
        self._changes[-1] = change

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
        """Freeze it, but not in the middle of a write that nobody else could then get past."""
        self._fleet.freeze(name)
        while await asyncio.to_thread(self._stage.is_file_locked):
            self._fleet.thaw()
            await self._look()
            self._fleet.freeze(name)

    async def _until_ready(self, names: list[str]) -> datetime:
        """Return when the first of them was ready to serve."""
        while True:
            await self._look()
            ready_at = first_start(read_logs(self._fleet.logs_of(names)))
            if ready_at is not None:
                return ready_at

    async def _drain(self) -> dict[str, Range]:
        """Have the rest published, and wait until all is handled or nothing moves any more."""
        self._headline = "the rest is published and handled"
        assert self._publisher is not None
        self._publisher.tell("hurry")
        while self._publisher.exit_code is None:
            await self._look()
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
        best, moved_s = -1, time.monotonic()
        while time.monotonic() - moved_s < IDLE_MAX_S:
            handled = sum(self._handled_count(p) for p in self._partition_ids)
            if handled >= count:
                return
            if handled > best:
                best, moved_s = handled, time.monotonic()
            await self._look()

    # Judging.

    async def _report(
        self,
        published: dict[str, Range],
        truth: Logbook,
        stopping_at: datetime,
        problems: list[str],
    ) -> Report:
        stage = self._stage
        logbook = Logbook()
        for partition_id in self._partition_ids:
            checkpoint = await stage.store.read_checkpoint(stage.group, partition_id)
            if checkpoint is not None and checkpoint.state:
                logbook.take_in(checkpoint.state)
        accounts = make_accounts(published, [(p, run) for _, p, run in self._deliveries])
        cut_off = {change.who for change in self._changes if change.kind in CUT_OFF}
        by_others = [(p, run) for name, p, run in self._deliveries if name not in cut_off]
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
            f"after '{change.kind}' the group did not find its balance in {BALANCE_MAX_S:.0f} s"
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
            seconds=time.monotonic() - self._begun_s,
            store=stage.note.name,
            partition_count=len(self._partition_ids),
            problems=tuple(problems),
        )
