"""Reads the group once for all browsers, and not at all while no browser looks."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from datetime import timedelta
from typing import Final

from eventproc._base.tasks import cancellation_kept
from eventproc._command.dashboard.messages import Json, Shown, sample_of, state_json
from eventproc._core.watching.causes import WatchRules
from eventproc._core.watching.changes import Entry, Tone, entries_between, entries_of_findings
from eventproc._core.watching.findings import findings_of, needs_whole_checkpoint
from eventproc._core.watching.group import WatchedGroup
from eventproc._core.watching.history import History
from eventproc._core.watching.memory import Memory, remember
from eventproc.errors import EventProcError, SourceError, StoreError

KEEP_ALIVE_S: Final = 15.0
"""After this long without a message a comment is sent, so that no proxy closes the stream."""

GAP_READINGS: Final = 3
GAP_MIN_S: Final = 15.0
"""A time without a reading is a gap in the history if it is longer than both, so many intervals and
this: a store that is slow to answer makes none."""

Read = Callable[[Collection[str]], Awaitable[WatchedGroup]]
"""Reads the group once; gets the partitions of which the whole checkpoint is wanted."""


class Watcher:
    """The readings of one group, and the messages on them."""

    def __init__(
        self,
        read: Read,
        rules: WatchRules,
        *,
        every: timedelta,
        hub_failure: Callable[[], SourceError | None],
        clock: Callable[[], float],
    ) -> None:
        """Give what reads the group and why the hub gave no answer; nothing is read yet."""
        self._read = read
        self._rules = rules
        self._every_s = every.total_seconds()
        self._hub_failure = hub_failure
        self._clock = clock
        self._history = History()
        self._shown: Shown | None = None
        self._problem: str | None = None
        self._failing_since_s = 0.0
        self._pending: list[Entry] = []
        self._viewers = 0
        self._looked_at = asyncio.Event()
        self._changed = asyncio.Condition()
        self._version = 0
        self._encoded: dict[int, bytes] = {}
        """The newest message by the number of the reading from which it continues."""

    async def run(self) -> None:
        """Read again and again, as long as somebody looks; until cancelled."""
        while True:
            await self._looked_at.wait()
            begun_s = self._clock()
            await self.read_once()
            took_s = self._clock() - begun_s
            await asyncio.sleep(max(self._every_s - took_s, self._every_s / 4))

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield the state, then what changes, as server-sent events."""
        self._viewers += 1
        self._looked_at.set()
        try:
            version, number = 0 if self._shown is None else -1, 0
            while True:
                try:
                    async with asyncio.timeout(KEEP_ALIVE_S), self._changed:
                        while self._version == version:
                            await self._changed.wait()
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                version = self._version
                message, number = self.encoded(number), self._history.number
                yield message
        finally:
            self._viewers -= 1
            if not self._viewers:
                self._looked_at.clear()

    def encoded(self, number: int) -> bytes:
        """Return the message that continues the one of this reading; of 0, everything."""
        if number not in self._encoded:
            body = json.dumps(self._state(number), separators=(",", ":"))
            self._encoded[number] = f"data: {body}\n\n".encode()
        return self._encoded[number]

    def _state(self, number: int) -> Json:
        state: Json = {"problem": self._problem, "every": self._every_s}
        if self._shown is not None:
            state["group"] = state_json(
                self._shown,
                self._history,
                since=number,
                expiration_s=self._rules.expiration_s,
            )
        return state

    async def read_once(self) -> None:
        """Read the group, and tell the browsers."""
        memory: Memory = {} if self._shown is None else self._shown.memory
        at_s = 0.0 if self._shown is None else self._shown.group.at_s
        unexplained = {
            p for p, known in memory.items() if needs_whole_checkpoint(known, at_s, self._rules)
        }
        try:
            with cancellation_kept():
                group = await self._read(unexplained)
        except StoreError as error:
            self._fail("The store did not answer", error)
        else:
            failure = self._hub_failure()
            if failure is None:
                self._recover()
            else:
                self._fail("The hub did not answer", failure)
            self._add(group)
        async with self._changed:
            self._version += 1
            self._encoded.clear()
            self._changed.notify_all()

    def _add(self, group: WatchedGroup) -> None:
        before = self._shown
        memory = remember({} if before is None else before.memory, group)
        findings = findings_of(memory, group, self._rules)
        self._shown = Shown(group=group, memory=memory, findings=findings)
        entries = [entry for entry in self._pending if entry.at_s <= group.at_s]
        self._pending.clear()
        if before is not None:
            entries += entries_between(before.group, group, expiration_s=self._rules.expiration_s)
        entries += entries_of_findings(() if before is None else before.findings, findings, group)
        self._history.add(
            group,
            sample_of(self._shown),
            entries,
            gap_s=max(GAP_READINGS * self._every_s, GAP_MIN_S),
        )

    # Outages.

    def _fail(self, what: str, error: EventProcError) -> None:
        why, now_s = " ".join(str(error).split()), self._clock()
        if self._problem is None:
            self._note("no answer", f"{what}: {why}", Tone.BAD)
            self._failing_since_s = now_s
        self._problem = f"{what} for {now_s - self._failing_since_s:.0f} s: {why}"

    def _recover(self) -> None:
        if self._problem is not None:
            self._problem = None
            self._note("answers again", "Store and hub answer again", Tone.GOOD)

    def _at_s(self) -> float:
        return 0.0 if self._shown is None else self._shown.group.at_s

    def _note(self, kind: str, text: str, tone: Tone) -> None:
        """Keep an entry until the next reading, which dates it."""
        self._pending.append(Entry(at_s=self._at_s(), kind=kind, text=text, tone=tone))
