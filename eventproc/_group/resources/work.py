"""Named resources, as the work that a group shares."""

from collections.abc import Sequence
from functools import partial
from random import Random

from eventproc._base.logs import Logger
from eventproc._base.retries import waits
from eventproc._base.threads import in_own_thread, to_its_end
from eventproc._group.pumps.pump import Grant, Opening, Work
from eventproc._group.resources.config import ResourceProcessorConfig
from eventproc._group.resources.handler import (
    AnyResourceHandler,
    BlockingHeldResource,
    BlockingResourceHandler,
    HeldResource,
    ResourceHandler,
    ResourceHandlerFactory,
)
from eventproc._group.resources.names import Resources, name_of
from eventproc._group.resources.resource_pump import ResourcePump


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


class NamedResources(Work[ResourcePump]):
    """Lists the resources, and makes their pumps."""

    handler_kinds = (ResourceHandler, BlockingResourceHandler)

    def __init__(
        self,
        resources: Resources,
        handler: ResourceHandlerFactory,
        *,
        config: ResourceProcessorConfig,
        rng: Random,
        log: Logger,
    ) -> None:
        self._resources = resources
        self._handler = handler
        self._config = config
        self._wait_s = waits(config.handler_backoff, rng)
        self._log = log
        self.names_interval = resources.every

    async def open(self, opening: Opening) -> None:
        """Do nothing: there is no connection."""

    async def names(self) -> Sequence[str]:
        """Return the ids of the resources that exist now."""
        return await self._resources.ids()

    def make_handler(self) -> AnyResourceHandler:
        """Return a new handler."""
        return self._handler()

    def display_name(self, name: str) -> str:
        """Return the resource's name."""
        return name_of(name)

    def make_pump(self, grant: Grant, handler: AnyResourceHandler) -> ResourcePump:
        """Return a pump, which calls a blocking handler in threads."""
        if isinstance(handler, BlockingResourceHandler):
            handler = ThreadedResourceHandler(handler)
        return ResourcePump(
            grant,
            handler,
            config=self._config,
            wait_s=self._wait_s,
            log=self._log.bind(resource=name_of(grant.name)),
        )
