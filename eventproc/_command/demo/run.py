"""The steps of the demo: start, join, kill, freeze, leave, drain, check.

Each wait polls the group. Owners are read from the ownership records in the store and handled
events from the journals, so the results do not depend on the SDK's own statistics.
"""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from eventproc._base.tasks import retrieve_outcome
from eventproc._command.demo.children import Child
from eventproc._command.demo.flights import Logbook, computed_directly, find_data_file, read_flights
from eventproc._command.demo.group import DemoGroup
from eventproc._command.demo.journal import Event, JournalReader
from eventproc._command.demo.report import (
    Change,
    Report,
    fewest_moves,
    is_balanced,
    make_accounts,
    shares,
)

POLL_INTERVAL_S: Final = 0.15
BALANCED_FOR_S: Final = 1.5
"""A group counts as balanced if it stays so for longer than the processors' poll interval."""

BALANCE_MAX_S: Final = 45.0
SUMMARY_S: Final = 5.0
"""The time between two lines about the events."""

IDLE_MAX_S: Final = 30.0
STREAM_S: Final = 60
"""In how many seconds the events are published: longer than the changes take."""

STOP_S: Final = 25.0
"""Longer than the processors' shutdown timeout and the exit of Python together."""


class DemoRun:
    """Runs the demo, and tells what happens."""

    def __init__(
        self,
        group: DemoGroup,
        *,
        event_count: int,
        processor_count: int,
        say: Callable[[str], None],
    ) -> None:
        self._group = group
        self._event_count = event_count
        self._processor_count = processor_count
        self._say = say
        self._live: dict[str, Child] = {}
        """The processors that should own partitions."""

        self._started_count = 0
        self._abrupt: list[str] = []
        self._owners: dict[str, str | None] = dict.fromkeys(group.partition_ids)
        self._journal = JournalReader(group.children.folder)
        self._changes: list[Change] = []
        self._problems: list[str] = []
        self._begun_s = self._told_s = time.monotonic()

    async def run(self) -> Report:
        """Run the demo, and return its report.

        Raises:
            ChildFailedError: A process failed.
        """
        truth = asyncio.ensure_future(asyncio.to_thread(self._truth))
        truth.add_done_callback(retrieve_outcome)  # It is not awaited if the demo fails.
        self._say(f"publishing {self._event_count:,} flights, at a steady rate")
        publisher = self._group.start_publisher(
            self._event_count, rate=max(1, self._event_count // STREAM_S)
        )
        await self._start(1, "start")
        await self._start(self._processor_count - 1, "join")
        await self._start(1, "join")
        await self._kill()
        # A process that is frozen while it writes to SQLite's file would block all others.
        if hasattr(signal, "SIGSTOP") and not self._group.is_sqlite:
            await self._freeze()
        await self._leave()
        self._say("the rest is published and handled")
        published = await self._drain(publisher)
        self._say("everything is handled: the processes stop")
        await asyncio.gather(*(self._stop(name, child) for name, child in self._live.items()))
        self._journal.read()
        figures = (await truth).figures_by_aircraft
        return Report(
            accounts=make_accounts(published, self._journal.deliveries, self._abrupt),
            changes=self._changes,
            result_matches=await self._group.stored_figures() == figures,
            aircraft=len(figures),
            partitions=len(self._owners),
            store="SQLite" if self._group.is_sqlite else "Azurite (Azure Blob Storage)",
            seconds=round(time.monotonic() - self._begun_s, 1),
            problems=self._problems,
        )

    def _truth(self) -> Logbook:
        return computed_directly(read_flights(find_data_file(), self._event_count))

    # Changes of the group.

    async def _start(self, count: int, kind: str) -> None:
        names = [chr(ord("A") + self._started_count + number) for number in range(count)]
        self._started_count += count
        self._live |= {name: self._group.start_processor(name) for name in names}
        await self._balance(kind, names, f"{kind}s" if count == 1 else kind)

    async def _kill(self) -> None:
        name = self._busiest()
        self._group.children.kill(name)
        del self._live[name]
        self._abrupt.append(name)
        await self._balance("kill", [name], "is killed (SIGKILL), without notice")

    async def _freeze(self) -> None:
        name = self._busiest()
        frozen = self._live.pop(name)
        frozen.signal(signal.SIGSTOP)
        self._abrupt.append(name)
        await self._balance("freeze", [name], "is frozen (SIGSTOP), as on a suspended machine")
        self._live[name] = frozen
        frozen.signal(signal.SIGCONT)
        await self._balance("thaw", [name], "continues (SIGCONT), after its leases have expired")

    async def _leave(self) -> None:
        name = self._busiest()
        leaving = asyncio.ensure_future(self._stop(name, self._live.pop(name)))
        await self._balance("leave", [name], "leaves gracefully (SIGTERM)")
        await leaving

    async def _stop(self, name: str, child: Child) -> None:
        child.signal(signal.SIGTERM)
        if code := await child.ended(STOP_S):
            self._problems.append(f"processor {name} stopped with exit code {code}")

    def _busiest(self) -> str:
        """Return the live processor with the most partitions."""
        counts = Counter(owner for owner in self._owners.values() if owner is not None)
        return max(self._live, key=lambda name: (counts[name], name))

    async def _is_there(self, names: Sequence[str]) -> bool:
        """Whether one of these processors is a member of the group."""
        members = (await self._group.store.list_members(self._group.group)).members
        return any(member.owner_id in names for member in members)

    # Observing.

    async def _balance(self, kind: str, names: Sequence[str], headline: str) -> None:
        """Wait until the group is balanced and stays so."""
        before = dict(self._owners)
        self._say(f"{' and '.join(names)} {headline}")
        while kind in {"start", "join"} and not await self._is_there(names):
            await self._poll()  # Python starts.
        began_s, balanced_s = time.monotonic(), None
        while balanced_s is None or time.monotonic() - balanced_s < BALANCED_FOR_S:
            await self._poll()
            if not is_balanced(self._owners, self._live):
                balanced_s = None
            elif balanced_s is None:
                balanced_s = time.monotonic()
            if balanced_s is None and time.monotonic() - began_s > BALANCE_MAX_S:
                break
        change = Change(
            kind=kind,
            processor=", ".join(names),
            seconds_to_balance=None if balanced_s is None else round(balanced_s - began_s, 2),
            moves=sum(before[p] != owner for p, owner in self._owners.items()),
            moves_minimum=fewest_moves(before, self._live),
        )
        self._changes.append(change)
        if change.seconds_to_balance is None:
            what = f"not balanced within {BALANCE_MAX_S:.0f} s"
            self._problems.append(f"after '{kind}' the group was {what}")
        else:
            what = f"balanced after {change.seconds_to_balance:.1f} s"
        moved = f"{change.moves} partitions moved (fewest possible: {change.moves_minimum})"
        self._say(f"  {what}: {shares(self._owners)}; {moved}")

    async def _poll(self) -> None:
        """Read the state of the group, and tell now and then what was handled."""
        await asyncio.sleep(POLL_INTERVAL_S)
        group = self._group
        group.children.check()
        snapshot = await group.store.list_ownership(group.group)
        self._owners |= {o.partition_id: o.owner_id for o in snapshot.ownerships}
        self._journal.read()
        if time.monotonic() - self._told_s >= SUMMARY_S:
            self._told_s = time.monotonic()
            published = sum(map(len, (await group.published()).values()))
            handled = len(self._journal.handled)
            lag = max(0, published - handled)
            self._say(f"  published {published:,}, handled {handled:,}, lag {lag:,}")

    async def _drain(self, publisher: Child) -> set[Event]:
        """Publish the rest, and wait until all is handled or there is no progress any more."""
        publisher.write_line()
        while publisher.exit_code is None:
            await self._poll()
        published = {
            (partition_id, number)
            for partition_id, numbers in (await self._group.published()).items()
            for number in numbers
        }
        if len(published) != self._event_count:
            self._problems.append(
                f"{self._event_count} events were to be published, the hub has {len(published)}"
            )
        handled_count, progress_s = -1, time.monotonic()
        while not published <= self._journal.handled:
            if len(self._journal.handled) > handled_count:
                handled_count, progress_s = len(self._journal.handled), time.monotonic()
            if time.monotonic() - progress_s > IDLE_MAX_S:
                break
            await self._poll()
        return published
