"""Reports a processor to its health reporter, from the start of a run to its end."""

import asyncio
from collections.abc import Callable
from functools import partial

from eventproc.concurrency.loop_thread import ping
from eventproc.logs import shown
from eventproc.ports import HealthReporter, WatchedMember
from eventproc.runtime.parts import MemberParts
from eventproc.runtime.store_thread import StoreExecutor
from eventproc.statistics import Phase


class Watching:
    """What a processor tells its health reporter, if it has one."""

    def __init__(self, parts: MemberParts, shown: Callable[[str], str]) -> None:
        """*shown* returns the user's name for a partition or resource."""
        self._parts = parts
        self._shown = shown
        self._member: WatchedMember | None = None
        self.phase = Phase.STARTING
        self._failure = ""

    async def begin(
        self, executor: StoreExecutor, owner_id: str, *, awaited: Callable[[], str]
    ) -> None:
        """Report that the processor starts.

        Args:
            executor: The run's, which is closed on an error.
            owner_id: The run's.
            awaited: Returns what the start waits for.

        Raises:
            ConfigurationError: the reporter cannot work.
        """
        self.phase, self._failure = Phase.STARTING, ""
        reporter: HealthReporter | None = self._parts.health
        if reporter is None:
            return
        member = WatchedMember(
            owner_id=owner_id,
            group=self._parts.group,
            phase=lambda: self.phase,
            awaited=awaited,
            failure=lambda: self._failure,
            statistics=self._parts.reported.read,
            shown=self._shown,
            ping_loop=partial(ping, asyncio.get_running_loop()),
            ping_store=executor.ping,
            meter_provider=self._parts.reported.meter_provider,
        )
        try:
            await reporter.begin(member)
        except BaseException:
            await executor.close()
            raise
        self._member = member

    def fail(self, error: Exception) -> None:
        """Report that the processor has failed: it serves nothing more, until it is started."""
        self.phase, self._failure = Phase.STOPPING, f"it has failed: {shown(error)}"

    async def end(self) -> None:
        """Report no more."""
        member, self._member = self._member, None
        if member is not None and self._parts.health is not None:
            await self._parts.health.end(member)
