"""A lease on one name, for a block of code that must run in one process of a group at a time.

It is a group of its own whose members want one resource, so it needs no rules of its own: members
wait while another one holds it, and the placement keeps it where it is.
"""

import asyncio
from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from types import TracebackType
from typing import Any, Final, Protocol

from eventproc.concurrency.tasks import CancellableBlock, end
from eventproc.config import GroupConfig, ResourceProcessorConfig
from eventproc.core.placement.even import Even
from eventproc.errors import LeaseLostError
from eventproc.models import LeaseMode, LoadBalancingStrategy
from eventproc.resources.handler import HeldResource, ResourceHandler, ResourceHandlerFactory

OVERRIDDEN: Final[dict[str, Any]] = {
    "placement": Even(),
    "weight": 1.0,
    "capacity": None,
    "ordinal": None,
    "load_balancing_strategy": LoadBalancingStrategy.COOPERATIVE,
    "lease_mode": LeaseMode.PARTITION,
    "deployment_id": "",
    "static_membership": False,
    "drain_delay": timedelta(0),
}
"""Settings that have no meaning for a single lease."""


def lease_config(config: GroupConfig) -> ResourceProcessorConfig:
    """Return the settings of a lease's group: the times are those of the processor."""
    settings = {f.name: getattr(config, f.name) for f in fields(GroupConfig)} | OVERRIDDEN
    return ResourceProcessorConfig(**settings, failover_timeout=None)


class LeaseMember(Protocol):
    """The member of the lease's group, as the lease uses it."""

    async def start(self) -> None:
        """Begin to wait for the lease."""

    async def stop(self) -> None:
        """Give the lease up; raise the error that ended the member before, if one did."""

    async def finished(self) -> None:
        """Return when the member has stopped, by itself or not."""


class NamedLease:
    """An ``async with`` block that runs while this processor has the lease."""

    def __init__(self, name: str, make: Callable[[ResourceHandlerFactory], LeaseMember]) -> None:
        """Prepare; *make* returns a member whose resource is the lease."""
        self._name = name
        self._member = make(lambda: _Holder(self))
        self._taken: asyncio.Future[HeldResource] = asyncio.get_running_loop().create_future()
        self._left = asyncio.Event()
        """Set when the block has ended."""

        self._is_over = asyncio.Event()
        """Set when the lease has been given up as well."""

        self._block = CancellableBlock()

    async def __aenter__(self) -> HeldResource:
        """Wait until this processor has the lease.

        Raises:
            StoreUnavailableError: the store did not answer.
            LeaseLostError: the processor was stopped meanwhile.
        """
        self._block.enter()
        try:
            await self._member.start()
            ended: asyncio.Future[Any] = asyncio.ensure_future(self._member.finished())
            await asyncio.wait([self._taken, ended], return_when=asyncio.FIRST_COMPLETED)
            await end([ended])
        except BaseException as error:
            await self._end(error)
            raise
        if not self._taken.done():
            await self._end(None)
            raise LeaseLostError(self._name)
        return self._taken.result()

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give the lease up.

        Raises:
            LeaseLostError: it was lost before the block ended.
        """
        await self._end(exc)

    async def revoke(self, asked_by: asyncio.Task[Any] | None) -> None:
        """Cancel the block, or the wait for it, and return when the lease was given up.

        If the block itself asks, it goes on, without the lease.
        """
        if self._block.task is None:
            return
        if self._block.task is asked_by:
            self._left.set()
            await self._member.stop()
            return
        self.interrupt()
        await self._is_over.wait()

    def take(self, held: HeldResource) -> None:
        """Let the block begin; called when this processor has the lease."""
        if not self._taken.done():
            self._taken.set_result(held)

    def interrupt(self) -> None:
        """Cancel the block: the lease is lost."""
        if not self._left.is_set():
            self._block.cancel()

    async def left(self) -> None:
        """Return when the block has ended."""
        await self._left.wait()

    async def _end(self, error: BaseException | None) -> None:
        """Give the lease up; raise ``LeaseLostError`` in place of the cancellation by a loss."""
        self._left.set()
        is_lost = await self._block.leave(error)
        try:
            await self._member.stop()
        finally:
            self._is_over.set()
        if is_lost:
            raise LeaseLostError(self._name) from error


class _Holder(ResourceHandler):
    """Tells a ``NamedLease`` when it has the lease, and when it has lost it."""

    def __init__(self, lease: NamedLease) -> None:
        self._lease = lease

    async def hold(self, held: HeldResource) -> None:
        """Let the block run; if this is cancelled, end when the block has ended."""
        self._lease.take(held)
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self._lease.interrupt()
            await self._lease.left()
            raise
