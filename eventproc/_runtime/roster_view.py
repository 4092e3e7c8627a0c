"""What a processor knows from its roster: read at the start, and again while it leads the group."""

import asyncio
from collections.abc import Callable

from eventproc._base.logs import ConditionLogger, Logger
from eventproc._base.tasks import cancellation_kept, end, users_code
from eventproc._group.pumps.pump import Opening
from eventproc.errors import ConfigurationError, RosterUnavailableError
from eventproc.ports import Roster


class RosterView:
    """The newest answer of a roster.

    Only the leader needs it, so a group asks as often as one processor does. Each one asks at its
    start, so that a roster that cannot be read is noticed before the processor has to lead.
    """

    def __init__(
        self, roster: Roster, owner_id: str, *, changed: Callable[[], None], log: Logger
    ) -> None:
        """*changed* is called after an answer that differs from the one before."""
        self._roster = roster
        self._owner_id = owner_id
        self._changed = changed
        self._log = log
        self._failure = ConditionLogger(log, "roster_unavailable", "roster_available")
        self._leads = asyncio.Event()
        self.owner_ids: frozenset[str] | None = None
        """The members that it names; ``None`` before the first answer, and while another processor
        leads."""

    async def open(self, opening: Opening) -> None:
        """Read it for the first time, and begin to read it while this processor leads.

        Raises:
            ConfigurationError: it cannot be read as configured, or has a mistake.
        """
        await self._roster.open_for(self)
        opening.push("roster", self._roster.close_for_others)
        try:
            await self._read()
        except ConfigurationError:
            raise
        except Exception as error:
            raise ConfigurationError(f"the roster failed with {error!r}: correct it") from error
        reading = asyncio.create_task(self._repeat())
        opening.push("roster_reading", lambda: end([reading]))

    def note_leader(self, *, leads: bool) -> None:
        """Note whether this processor leads the group."""
        if leads:
            self._leads.set()
        else:
            self._leads.clear()
            self.owner_ids = None

    async def _repeat(self) -> None:
        interval_s = self._roster.interval.total_seconds()
        while True:
            await asyncio.sleep(interval_s)
            await self._leads.wait()
            try:
                with cancellation_kept(), users_code():
                    await self._read()
            except ConfigurationError as error:  # A right that was taken away may come back.
                self._failure.note(is_error=True, error=str(error))
            except Exception as error:  # noqa: BLE001 - a roster may be the user's own
                self._failure.note(is_error=True, error=repr(error), exc_info=error)

    async def _read(self) -> None:
        try:
            found = await self._roster.owner_ids()
        except RosterUnavailableError as error:
            self._failure.note(error=str(error))
            return
        self._failure.end()
        before, self.owner_ids = self.owner_ids, found
        if found == before:
            return
        self._log.info("roster_changed", owner_ids=sorted(found))
        if self._owner_id not in found:
            self._log.warning("roster_omits_own", owner_ids=sorted(found))
        self._changed()
