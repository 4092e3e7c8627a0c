"""What every processor is made of, whatever its group shares."""

import os
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random, SystemRandom
from typing import Self

from eventproc._base.logs import (
    Logger,
    get_logger,
    with_fields_of_processor,
)
from eventproc._delivery.checks import check_member, check_roster
from eventproc._group.config import GroupConfig
from eventproc._group.membership import own_member
from eventproc._runtime.guarded_store import GuardedStore
from eventproc.models import ConsumerGroup, Member, OffsetFormat
from eventproc.models._statistics import GroupStatistics
from eventproc.ports import CheckpointStore, HealthReporter, Roster
from eventproc.telemetry import Telemetry
from eventproc.telemetry._reporting import Instrumentation, global_telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberParts:
    """The arguments of a member of a group, checked."""

    store: CheckpointStore
    """The user's, in a ``GuardedStore``."""

    group: ConsumerGroup
    member: Member
    """As it is before a start: without an incarnation, and without an owner id if none is given."""

    config: GroupConfig
    rng: Random
    clock: Callable[[], float] | None
    log: Logger
    log_fields: dict[str, object]
    """On every line of the processor; a start adds the owner id."""

    identity_bits: Callable[[int], int]
    """Returns that many random bits, for owner id and incarnation."""

    reported: Instrumentation
    """Where its metrics and spans go."""

    roster: Roster | None
    health: HealthReporter | None

    @classmethod
    def of(
        cls,
        group: ConsumerGroup,
        store: CheckpointStore,
        config: GroupConfig,
        *,
        owner_id: str | None,
        roster: Roster | None,
        rng: Random | None,
        clock: Callable[[], float] | None,
        identity_bits: Callable[[int], int] | None,
        telemetry: Telemetry | None,
        health: HealthReporter | None,
        statistics: Callable[[], GroupStatistics],
        log_fields: dict[str, object],
        offset_format: OffsetFormat = OffsetFormat.AMQP,
    ) -> Self:
        """Check the arguments; take the owner id from the roster if none is given.

        *statistics* returns those of the processor; the other arguments are the processor's own.

        Raises:
            ConfigurationError: they do not fit together; the message names the remedy.
        """
        if roster is not None:
            check_roster(config, roster, owner_id)
            owner_id = owner_id or roster.own_id
        check_member(config, owner_id)
        log = with_fields_of_processor(get_logger("eventproc.processor"), log_fields)
        return cls(
            store=GuardedStore(store, log),
            group=group,
            member=own_member(config, owner_id or "", offset_format),
            config=config,
            # Without a state: children of a fork that copied it would do everything in step.
            rng=rng or SystemRandom(),
            clock=clock,
            log=log,
            log_fields=log_fields,
            identity_bits=identity_bits or secrets.randbits,
            reported=Instrumentation(telemetry or global_telemetry(), group, statistics),
            roster=roster,
            health=health,
        )

    def identified(self) -> Self:
        """Return the parts with the identity of a new run: an incarnation, an owner id if needed.

        Drawn at each start and from the system's randomness, because a processor may have been
        built before a fork, or from a generator that others have, too.
        """
        bits = self.identity_bits
        owner_id = self.member.owner_id or f"{_host()}-{os.getpid()}-{bits(32):08x}"
        member = replace(self.member, owner_id=owner_id, incarnation=f"{bits(64):016x}")
        return replace(self, member=member)


def _host() -> str:
    return socket.gethostname().encode("ascii", "replace").decode().replace("/", "-")
