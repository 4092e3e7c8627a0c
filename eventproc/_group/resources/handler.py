"""The handler classes that users subclass to hold resources, and what their methods receive."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import TypeAlias


class HeldResource:
    """A resource that this processor holds."""

    __module__ = "eventproc"

    def __init__(
        self, name: str, *, epoch: int, owner_id: str, remaining_s: Callable[[], float]
    ) -> None:
        self.name = name
        self.epoch = epoch
        """The fencing token: higher than that of every earlier holder of this name.

        Send it with each request. An outside system that refuses requests below the highest one it
        has seen for this name is safe, even from a holder that was suspended and woke up.
        """

        self.owner_id = owner_id
        """The processor that holds it."""

        self.remaining_s = remaining_s
        """Returns for how many seconds the lease is trusted; zero or less: it is not."""

    @property
    def remaining(self) -> timedelta:
        """For how long the lease is trusted from now on, if it is not renewed; zero: it is not."""
        return timedelta(seconds=max(0.0, self.remaining_s()))

    @property
    def is_held(self) -> bool:
        """Whether the lease is trusted now. Check it before an effect that cannot be undone."""
        return self.remaining_s() > 0


class ResourceHandler:
    """Subclass this to hold resources with coroutines. One instance serves one resource.

    Calls run on the processor's event loop: code that blocks belongs in a
    ``BlockingResourceHandler``.
    """

    __module__ = "eventproc"

    async def hold(self, held: HeldResource) -> None:
        """Use the resource. This runs for as long as the resource is held, and is then cancelled.

        It is cancelled (``asyncio.CancelledError``) when the resource is lost, when its lease could
        not be renewed in time, and when the resource moves or the processor stops, after ``drain``.
        The next holder begins when it has ended, or after ``handoff_timeout``: undo quickly what
        was done, and do not suppress the cancellation.

        If it returns or raises although the resource is held, it is called again after a back-off;
        after ``failover_timeout`` the resource goes to another processor.
        """
        raise NotImplementedError(f"{type(self).__name__} must define hold")

    async def prepare(self, name: str) -> None:
        """Called on a backup of the resource, before it holds it: open what takes long to open.

        Only with a placement that has backups (``Ring(backups=1)``), and if this is overridden.
        ``hold`` of the same instance is called when this processor takes the resource; if this
        still runs then, it is cancelled first. If it raises, it is called again after a back-off.
        Nothing may be done here that only a holder may do.
        """

    async def discard(self, name: str) -> None:
        """Called if this processor is no backup any more and does not hold it: undo ``prepare``."""

    async def drain(self, held: HeldResource) -> None:
        """Called before a planned end, while ``hold`` still runs: finish what is under way.

        ``hold`` is cancelled when this returns. If ``hold`` returns first, nothing is left to do,
        and this is cancelled. Both together may take ``shutdown_timeout``.
        """


class BlockingHeldResource(HeldResource):
    """A resource that is held by ordinary functions, which run in a thread."""

    __module__ = "eventproc"

    def __init__(self, held: HeldResource) -> None:
        super().__init__(
            held.name, epoch=held.epoch, owner_id=held.owner_id, remaining_s=held.remaining_s
        )
        self._is_over = threading.Event()

    @property
    def is_cancelled(self) -> bool:
        """Whether ``hold`` has to return now. A thread cannot be stopped, so check this often."""
        return self._is_over.is_set()

    def wait(self, span: timedelta) -> bool:
        """Sleep for *span*, or until ``hold`` has to return; return whether it has to."""
        return self._is_over.wait(span.total_seconds())

    def cancel(self) -> None:
        """Tell the thread to return; called by the processor."""
        self._is_over.set()


class BlockingResourceHandler:
    """Subclass this to hold resources with ordinary functions.

    Each call of ``hold`` has a thread of its own. A thread cannot be stopped from outside. So
    ``hold`` must return soon after ``held.is_cancelled`` became true: until then the resource is
    not handed over, and after a loss of the lease another processor may hold it at the same time.
    """

    __module__ = "eventproc"

    def hold(self, held: BlockingHeldResource) -> None:
        """Use the resource until ``held.is_cancelled``; see ``ResourceHandler.hold``."""
        raise NotImplementedError(f"{type(self).__name__} must define hold")

    def prepare(self, name: str) -> None:
        """Called in a thread, on a backup of the resource; see ``ResourceHandler.prepare``."""

    def discard(self, name: str) -> None:
        """Called in a thread, to undo ``prepare``; see ``ResourceHandler.discard``."""

    def drain(self, held: BlockingHeldResource) -> None:
        """Called in another thread before a planned end; see ``ResourceHandler.drain``."""


AnyResourceHandler: TypeAlias = ResourceHandler | BlockingResourceHandler
ResourceHandlerFactory: TypeAlias = Callable[[], AnyResourceHandler]
"""Makes the handler of a resource: usually the handler class."""
