"""What the driver sends to a task of a fleet: frozen, picklable values.

``FleetWork`` is pickled separately from ``FleetJob``, so that a task that cannot unpickle it
(because a module is missing on its executor) can still report that.
"""

import pickle
from dataclasses import dataclass, field
from datetime import timedelta

from eventproc._delivery.config import EventProcessorConfig
from eventproc._delivery.handler import HandlerFactory
from eventproc.errors import ConfigurationError
from eventproc.ports import DeadLetterSink
from eventproc.sources.eventhubs import EventHubOptions
from spark_integration._recipes import SourceRecipe, StoreRecipe, load


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetWork:
    """The arguments from which every processor of a fleet is made."""

    source: SourceRecipe
    store: StoreRecipe
    handler: HandlerFactory | str
    dead_letters: str | None
    consumer_group: str
    config: EventProcessorConfig
    hub_options: EventHubOptions

    def load_handler(self) -> HandlerFactory:
        """Return the handler factory; import it if it is given by name.

        Raises:
            ConfigurationError: it cannot be imported on this machine.
        """
        return load("handler", self.handler) if isinstance(self.handler, str) else self.handler

    def make_dead_letters(self) -> DeadLetterSink | None:
        """Make the dead-letter sink, if one is given.

        Raises:
            ConfigurationError: its function cannot be imported on this machine.
        """
        return load("dead_letters", self.dead_letters)() if self.dead_letters else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetJob:
    """Where a member reports to, its time-outs, and its work."""

    name: str
    host: str
    port: int
    token: str = field(repr=False)
    driver_patience: timedelta
    """How long the driver may be unreachable before a member stops gracefully."""

    stop_timeout: timedelta
    """How long a member may take to stop; after that it ends its process."""

    work: bytes = field(repr=False)
    """A pickled ``FleetWork``."""

    def owner_id(self, slot: int) -> str:
        """Return the owner id of a slot's processor."""
        return f"{self.name}-{slot}"

    def open_work(self) -> FleetWork:
        """Unpickle the work.

        Raises:
            ConfigurationError: a module that it needs is missing on this machine.
        """
        try:
            work: FleetWork = pickle.loads(self.work)  # noqa: S301 - from the driver, as is all code
        except (ImportError, AttributeError) as error:
            raise ConfigurationError(
                f"the handler or a setting cannot be loaded on this executor: {error}. Install its "
                "module on the driver and on every executor, or name it as module:Class"
            ) from error
        return work
