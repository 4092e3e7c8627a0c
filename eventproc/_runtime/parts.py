"""What every processor is made of, whatever its group shares.

Wraps the checkpoint store of a processor, so that only errors of eventproc come out of it.

Rule 1: any other exception counts as an unknown outcome: a read raises ``StoreError`` from it, and
a write reports ``UNKNOWN``. So a bug in an adapter, or an error of a client library that an adapter
does not translate, does not end the processor.
Rule 2: such an exception is logged once for each method, and again only after the method succeeded.
"""

import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from random import Random, SystemRandom
from typing import Any, Concatenate, NoReturn, ParamSpec, Self, TypeVar

from eventproc._base.logs import (
    ConditionLogger,
    Logger,
    get_logger,
    shown,
    with_fields_of_processor,
)
from eventproc._base.tasks import cancellation_kept, users_code
from eventproc._delivery.checks import check_member, check_roster
from eventproc._group.config import GroupConfig
from eventproc._group.membership import own_member
from eventproc.errors import ConfigurationError, StoreError
from eventproc.models import ConsumerGroup, Member, OffsetFormat
from eventproc.models._statistics import GroupStatistics
from eventproc.ports import CheckpointStore, ForwardingStore, HealthReporter, Roster
from eventproc.telemetry import Telemetry
from eventproc.telemetry._reporting import Instrumentation, global_telemetry

T = TypeVar("T")
P = ParamSpec("P")


class GuardedStore(ForwardingStore):
    """A checkpoint store that calls another one, and translates its unexpected exceptions.

    Each method is that of ``ForwardingStore``, which comes to ``forward`` here.
    """

    def __init__(self, store: CheckpointStore, log: Logger) -> None:
        super().__init__(store)
        self._name = type(store).__name__
        self._log = log
        self._failure_by_method: dict[str, ConditionLogger] = {}

    def __repr__(self) -> str:
        return repr(self.store)

    async def open(self) -> None:
        """Open the store; an unexpected exception becomes a ``StoreError``.

        Raises:
            ConfigurationError: another processor uses it.
        """
        self.store.reserve(self)
        try:
            await self.forward(CheckpointStore.open)
        except BaseException:
            self.store.give_back()
            raise

    async def close(self) -> None:
        """Close the store; an error is only logged."""
        try:
            await self.forward(CheckpointStore.close)
        except StoreError as error:
            self._log.warning("store_close_failed", error=str(error))
        finally:
            self.store.give_back()

    async def watch(
        self, group: ConsumerGroup, owner_id: str, changed: Callable[[], object]
    ) -> None:
        """Watch the store; an unexpected exception becomes a ``StoreError``."""
        await self.forward(CheckpointStore.watch, group, owner_id, changed)

    async def forward(
        self,
        method: Callable[Concatenate[Any, P], Awaitable[T]],
        *args: P.args,
        **options: P.kwargs,
    ) -> T:
        """Call the store; raise only ``StoreError`` and ``ConfigurationError``."""
        name = method.__name__
        try:
            with cancellation_kept(), users_code():
                answer: T = await getattr(self.store, name)(*args, **options)
        except (StoreError, ConfigurationError):
            raise
        except Exception as error:  # noqa: BLE001 - the one place around the user's store
            self._refuse(name, error)
        if name in self._failure_by_method:
            self._failure_by_method[name].end(call=name)
        return answer

    def _refuse(self, name: str, error: BaseException) -> NoReturn:
        translated = StoreError(
            f"{self._name}.{name} raised {shown(error)}, which no checkpoint store may raise: "
            "raise one of the errors of eventproc.errors instead (StoreUnavailableError: no answer)"
        )
        failure = self._failure_by_method.setdefault(
            name, ConditionLogger(self._log, "store_call_failed", "store_call_recovered")
        )
        failure.note(is_error=True, call=name, error=shown(error), exc_info=error)
        raise translated from error


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
