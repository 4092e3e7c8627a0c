"""What every processor is made of, whatever its group shares."""

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Self

from eventproc.config import GroupConfig
from eventproc.logs import Logger
from eventproc.models import ConsumerGroup, Member, OffsetFormat
from eventproc.ownership.own_member import own_member
from eventproc.ports import CheckpointStore, HealthReporter, Roster
from eventproc.runtime.guarded_store import GuardedStore
from eventproc.runtime.store_thread import StoreExecutor
from eventproc.validation.handlers import check_member, check_roster


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberParts:
    """The arguments of a member of a group, checked."""

    store: CheckpointStore
    group: ConsumerGroup
    member: Member
    config: GroupConfig
    rng: Random
    clock: Callable[[], float] | None
    log: Logger
    executor: StoreExecutor | None = None
    """The thread of the store, if another processor opened the store and will close it."""

    roster: Roster | None = None
    health: HealthReporter | None = None

    @classmethod
    def of(
        cls,
        group: ConsumerGroup,
        store: CheckpointStore,
        config: GroupConfig,
        *,
        owner_id: str | None,
        rng: Random | None,
        clock: Callable[[], float] | None,
        log: Logger,
        offset_format: OffsetFormat = OffsetFormat.AMQP,
        roster: Roster | None = None,
        health: HealthReporter | None = None,
    ) -> Self:
        """Check the arguments; take the owner id from the roster or draw one, if none is given.

        Raises:
            ConfigurationError: they do not fit together; the message names the remedy.
        """
        if roster is not None:
            check_roster(config, roster, owner_id)
            owner_id = owner_id or roster.own_id
        check_member(config, owner_id)
        rng = rng or Random()  # noqa: S311 - jitter and names, no secrets
        name = owner_id if owner_id is not None else _drawn_owner_id(rng)
        log = log.bind(owner_id=name)
        return cls(
            store=GuardedStore(store, log),
            group=group,
            member=own_member(config, name, offset_format, is_named=owner_id is not None),
            config=config,
            rng=rng,
            clock=clock,
            log=log,
            roster=roster,
            health=health,
        )


def _drawn_owner_id(rng: Random) -> str:
    """Return a name that no other processor has: of host, process, and a random number."""
    host = socket.gethostname().encode("ascii", "replace").decode().replace("/", "-")
    return f"{host}-{os.getpid()}-{rng.getrandbits(32):08x}"
