"""What a task of a fleet is told: frozen values, without a connection and without Spark.

The work is pickled apart from the rest, so that a task in which it cannot be unpickled, because a
module is missing there, can still say so.
"""

import pickle
from dataclasses import dataclass, field
from datetime import timedelta

from eventproc.config import EventProcessorConfig
from eventproc.errors import ConfigurationError
from eventproc.handler import HandlerFactory
from eventproc.ports import DeadLetterSink
from eventproc.sources.eventhubs import EventHubOptions
from spark_integration.recipes import SourceRecipe, StoreRecipe, load


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetWork:
    """What every processor of a fleet is made from."""

    source: SourceRecipe
    store: StoreRecipe
    handler: HandlerFactory | str
    dead_letters: str | None
    consumer_group: str
    config: EventProcessorConfig
    hub_options: EventHubOptions

    def load_handler(self) -> HandlerFactory:
        """Find the handler on this machine.

        Raises:
            ConfigurationError: it is not here.
        """
        return load("handler", self.handler) if isinstance(self.handler, str) else self.handler

    def make_dead_letters(self) -> DeadLetterSink | None:
        """Make the sink, if there is one.

        Raises:
            ConfigurationError: its function is not here.
        """
        if self.dead_letters is None:
            return None
        return load("dead_letters", self.dead_letters)()  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOrder:
    """Where a member reports, and what it is to do."""

    name: str
    host: str
    port: int
    token: str = field(repr=False)
    driver_patience: timedelta
    """How long the driver may be out of reach before a member stops, in good order."""

    stop_timeout: timedelta
    """How long a member may take to stop; then it ends its process."""

    work: bytes = field(repr=False)
    """A pickled ``FleetWork``."""

    def owner_id(self, slot: int) -> str:
        """Return the name of a slot's processor in its group."""
        return f"{self.name}-{slot}"

    def open_work(self) -> FleetWork:
        """Unpickle the work.

        Raises:
            ConfigurationError: this machine lacks something that it names.
        """
        try:
            work: FleetWork = pickle.loads(self.work)  # noqa: S301 - Spark brought it here like code
        except (ImportError, AttributeError) as error:
            raise ConfigurationError(
                f"the handler or a setting cannot be loaded on this executor: {error}. Install its "
                "module on the driver and on every executor, or name it as module:Class"
            ) from error
        return work
