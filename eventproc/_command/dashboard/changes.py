"""Changes that an operator makes on the page: computed, shown, confirmed, and then carried out.

To add an action, write a method of ``Changes`` that plans it, and name it in ``ACTIONS``; the
buttons of the page are in ``page/change.js``.
"""

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from eventproc._base.tasks import retrieve_outcome
from eventproc._command.dashboard.guard import RefusedError
from eventproc._command.group.changes import carry_out, plan_reset, read_group_state
from eventproc._command.group.connection import Connection
from eventproc._command.group.shown_changes import changes_json, warnings_for
from eventproc._command.group.targets import parse_target
from eventproc._core.ownership.pauses import NO_PAUSES
from eventproc.admin import pause_group, read_pauses, resume_group
from eventproc.errors import EventProcError, StoreCorruptError

PLANS_MAX: Final = 16
"""Plans that wait for confirmation; the oldest is dropped for a new one."""

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A change that is computed and not made yet."""

    summary: Json
    """What the operator is asked to confirm."""

    carry_out: Callable[[], Awaitable[Json]]
    """Makes exactly the change that was shown, and returns its results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The group that is changed, and how."""

    connection: Connection
    expiration: timedelta
    lookup_group: str

    async def plan_reset(self, asked: Json) -> Plan:
        """Plan to move checkpoints.

        The page gives ``to``, as in ``checkpoints reset``, ``partitions`` and ``keeps_state``.
        """
        partitions = _partitions_of(asked)
        to = asked.get("to")
        if not isinstance(to, str):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "Say where to.")
        await self._refuse_foreign_group()
        changes = await plan_reset(
            self.connection,
            partitions,
            parse_target("The target", to),
            keeps_state=asked.get("keeps_state") is True,
            lookup_group=self.lookup_group,
            expiration=self.expiration,
        )

        async def move() -> Json:
            await self._refuse_foreign_group()
            results = await carry_out(self.connection, changes, expiration=self.expiration)
            return changes_json(self.connection.group, changes, results)

        summary = changes_json(self.connection.group, changes, {})
        warnings = [text.plain for text in warnings_for(changes)]
        return Plan(summary={**summary, "warnings": warnings}, carry_out=move)

    async def plan_pause(self, asked: Json) -> Plan:
        """Plan to pause partitions or the whole group, as ``eventproc pause`` does.

        The page gives ``reason``, and ``partitions`` or ``is_whole``.
        """
        partitions, names = await self._paused_or_resumed(asked)
        reason = str(asked.get("reason", "")).strip()
        NO_PAUSES.paused(partitions, datetime.now(UTC), reason)  # refuses a wrong reason now
        await self._refuse_foreign_group()

        async def pause() -> Json:
            await pause_group(
                self.connection.store,
                self.connection.group,
                partitions,
                reason=reason,
                expiration=self.expiration,
            )
            return {"text": f"Paused: {names}. Owners hear of it at their next poll."}

        text = (
            f"Nothing of {names} is delivered until you resume, also after restarts and by other "
            "owners. Handler calls under way finish."
        )
        return Plan(summary={"text": text}, carry_out=pause)

    async def plan_resume(self, asked: Json) -> Plan:
        """Plan to resume partitions or the whole group, as ``eventproc resume`` does."""
        partitions, names = await self._paused_or_resumed(asked)
        try:
            current = await read_pauses(self.connection.store, self.connection.group)
        except StoreCorruptError:
            if partitions is not None:
                raise
        else:  # Refuses now what a pause of the whole group does not allow.
            if current.resumed(partitions) == current:
                raise RefusedError(
                    HTTPStatus.CONFLICT, f"Nothing of {names} is paused, so nothing can resume."
                )

        async def resume() -> Json:
            await resume_group(self.connection.store, self.connection.group, partitions)
            return {"text": f"Resumed: {names}. Owners hear of it at their next poll."}

        text = f"The owners of {names} continue where they stopped."
        return Plan(summary={"text": text}, carry_out=resume)

    async def _paused_or_resumed(self, asked: Json) -> tuple[list[str] | None, str]:
        """Return the partitions, ``None`` for the whole group, and what to call them."""
        if asked.get("is_whole") is True:
            return None, "the whole group"
        partitions = await self._known(asked)
        return partitions, ", ".join(partitions)

    async def _known(self, asked: Json) -> list[str]:
        """Return the partitions asked for, after a check that they exist."""
        wanted = _partitions_of(asked)
        current = await read_group_state(self.connection, self.expiration)
        known = {*current.owner_by_partition, *current.records}
        return await self.connection.partition_ids(wanted, list(known))

    async def _refuse_foreign_group(self) -> None:
        """Refuse to change a group in which an Azure SDK takes part: it would ignore the change."""
        current = await read_group_state(self.connection, self.expiration)
        foreign = set(current.owner_by_partition.values()) - current.present
        if foreign:
            raise RefusedError(
                HTTPStatus.CONFLICT,
                f"{min(foreign)} is a processor of an Azure SDK: it would ignore a "
                "change, and overwrite it. Stop such processors first.",
            )


ACTIONS: Final[Mapping[str, Callable[[Changes, Json], Awaitable[Plan]]]] = {
    "reset": Changes.plan_reset,
    "pause": Changes.plan_pause,
    "resume": Changes.plan_resume,
}
"""What can be done on the page."""


def _partitions_of(asked: Json) -> list[str]:
    partitions = asked.get("partitions")
    if (
        not isinstance(partitions, list)
        or not partitions
        or not all(isinstance(each, str) for each in partitions)
    ):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "Say which partitions: a list of their ids.")
    return partitions


class PendingChanges:
    """Plans that wait for their confirmation."""

    def __init__(self, changes: Changes) -> None:
        self.token = secrets.token_urlsafe(24)
        """Whoever has it may plan and confirm."""

        self._changes = changes
        self._plans: OrderedDict[str, Plan] = OrderedDict()

    async def plan(self, asked: Json) -> Json:
        """Compute a change, and return what to confirm; ``id`` identifies it.

        Raises:
            RefusedError: It is not possible; the message says why.
        """
        action = ACTIONS.get(str(asked.get("action")))
        if action is None:
            raise RefusedError(
                HTTPStatus.BAD_REQUEST, f"There is no such action; there are: {', '.join(ACTIONS)}."
            )
        plan = await _refusing(action(self._changes, asked))
        plan_id = secrets.token_urlsafe(12)
        self._plans[plan_id] = plan
        while len(self._plans) > PLANS_MAX:
            self._plans.popitem(last=False)
        return {**plan.summary, "id": plan_id}

    async def confirm(self, asked: Json) -> Json:
        """Carry out a plan, once, also if the browser goes away meanwhile; return its results.

        Raises:
            RefusedError: There is no such plan, or it could not be carried out.
        """
        plan = self._plans.pop(str(asked.get("id")), None)
        if plan is None:
            raise RefusedError(
                HTTPStatus.GONE, "This change was made already, or has to be computed again."
            )
        making = asyncio.ensure_future(_refusing(plan.carry_out()))
        making.add_done_callback(retrieve_outcome)
        return await asyncio.shield(making)


async def _refusing(change: Awaitable[Any]) -> Any:  # noqa: ANN401 - a plan or its results
    try:
        return await change
    except EventProcError as error:
        raise RefusedError(HTTPStatus.CONFLICT, " ".join(str(error).split())) from error
