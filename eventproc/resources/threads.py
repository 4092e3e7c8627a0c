"""Runs a ``BlockingResourceHandler`` in threads, as a ``ResourceHandler``."""

from functools import partial

from eventproc.concurrency.threads import in_own_thread, to_its_end
from eventproc.resources.handler import (
    BlockingHeldResource,
    BlockingResourceHandler,
    HeldResource,
    ResourceHandler,
)


class ThreadedResourceHandler(ResourceHandler):
    """Calls the methods of a blocking handler, each call in a thread of its own."""

    def __init__(self, handler: BlockingResourceHandler) -> None:
        self._handler = handler
        self._view: BlockingHeldResource | None = None

    async def hold(self, held: HeldResource) -> None:
        """Run ``hold`` in a thread. If cancelled, wait until the thread has returned.

        So a hand-over, which waits for this call, does not begin while the thread runs. A second
        cancellation, at the end of ``shutdown_timeout``, does not wait.
        """
        view = self._view = BlockingHeldResource(held)
        running = in_own_thread(partial(self._handler.hold, view), f"eventproc-hold-{held.name}")
        await to_its_end(running, on_cancel=view.cancel)

    async def drain(self, held: HeldResource) -> None:
        """Run ``drain`` in another thread than ``hold``."""
        if self._view is not None:
            drain = partial(self._handler.drain, self._view)
            await in_own_thread(drain, f"eventproc-drain-{held.name}")
