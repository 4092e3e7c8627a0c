"""Named resources, as the work that a group shares."""

from collections.abc import Sequence
from random import Random

from eventproc.config import ResourceProcessorConfig
from eventproc.logs import Logger
from eventproc.pumps.pump import Grant, Opening, Work
from eventproc.resources.handler import (
    AnyResourceHandler,
    BlockingResourceHandler,
    ResourceHandler,
    ResourceHandlerFactory,
)
from eventproc.resources.names import Resources, name_of
from eventproc.resources.pump import ResourcePump
from eventproc.resources.threads import ThreadedResourceHandler
from eventproc.retries import waits


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
        self._rng = rng
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

    def shown(self, name: str) -> str:
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
            wait_s=waits(self._config.handler_backoff, self._rng),
            log=self._log.bind(resource=name_of(grant.name)),
        )
