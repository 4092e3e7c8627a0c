"""The options of the sink: one frozen value, checked when it is built."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from eventproc.blocking import ThreadedHandler
from eventproc.config import FailureAction, FailurePolicy
from eventproc.errors import ConfigurationError
from eventproc.handler import BlockingPartitionHandler, HandlerFactory, PartitionHandler
from eventproc.models import ConsumerGroup
from eventproc.ports import DeadLetterSink
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource
from spark_integration.options import Given
from spark_integration.recipes import StoreRecipe, load
from spark_integration.secrets import Secret

SINK_OPTIONS: Final = (
    "handler",
    "connectionString",
    "fullyQualifiedNamespace",
    "eventHubName",
    "consumerGroup",
    "checkpointStore",
    "storageConnectionString",
    "maxEventsPerCall",
    "maxAttempts",
    "onFailure",
    "deadLetters",
    "deferCheckpoints",
    "operationTimeout",
)
"""Every option that the sink knows; ``docs/spark.md`` explains them."""

SPARKS_OWN: Final = frozenset({"checkpointlocation", "path", "queryname"})
"""What Spark hands to a sink along with its options."""

EVENTS_PER_CALL: Final = 300
"""As in a processor."""

ATTEMPTS: Final = 3
"""For one event, within one task; Spark tries a failed task again by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecipe:
    """Which consumer group of which hub: its names, or a connection string that has them."""

    consumer_group: str
    eventhub_name: str | None = None
    namespace: str | None = None
    connection: Secret | None = None

    def __post_init__(self) -> None:
        """Refuse two ways, and none."""
        if (self.connection is None) == (self.namespace is None):
            raise ConfigurationError(
                "whose checkpoints? Give the sink fullyQualifiedNamespace and eventHubName, or "
                "connectionString (env:NAME, file:PATH, or the string itself), as the source has it"
            )
        if self.namespace is not None and self.eventhub_name is None:
            raise ConfigurationError("fullyQualifiedNamespace needs the option eventHubName, too")

    def make(self) -> ConsumerGroup:
        """Return the group; nothing is connected."""
        namespace, eventhub_name = self.namespace, self.eventhub_name
        if self.connection is not None:
            source = EventHubSource.from_connection_string(
                self.connection.read(), eventhub_name=eventhub_name, options=EventHubOptions()
            )
            namespace = source.fully_qualified_namespace
            eventhub_name = source.eventhub_name
        assert namespace is not None
        assert eventhub_name is not None
        return ConsumerGroup(
            fully_qualified_namespace=namespace,
            eventhub_name=eventhub_name,
            name=self.consumer_group,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """What the sink was told. Printing it shows no secret; it can be pickled."""

    handler: str | HandlerFactory
    """``module:Class``; ``CheckpointingSink`` takes the class itself, too."""

    group: GroupRecipe
    store: StoreRecipe
    events_per_call_max: int = EVENTS_PER_CALL
    failure_policy: FailurePolicy = field(
        default_factory=lambda: FailurePolicy(attempts_max=ATTEMPTS)
    )
    dead_letters: str | None = None
    """``module:function``, which makes a ``DeadLetterSink``."""

    defers_checkpoints: bool = False
    patience: timedelta = timedelta(minutes=1)
    """How long the store may be out of reach before a task or a commit fails."""

    def __post_init__(self) -> None:
        """Refuse what does not fit together."""
        gives_away = self.failure_policy.then is FailureAction.DEAD_LETTER
        if gives_away != (self.dead_letters is not None):
            raise ConfigurationError(
                "onFailure=deadLetter and deadLetters=module:function belong together: give both"
            )

    def make_handler(self) -> PartitionHandler:
        """Make a handler for one partition.

        Raises:
            ConfigurationError: there is no such class here, or it is no handler.
        """
        make = load("handler", self.handler) if isinstance(self.handler, str) else self.handler
        handler = make()
        if isinstance(handler, BlockingPartitionHandler):
            return ThreadedHandler(handler)
        if not isinstance(handler, PartitionHandler):
            raise ConfigurationError(
                f"handler {self.handler!r} makes a {type(handler).__name__}: name a subclass of "
                "PartitionHandler or BlockingPartitionHandler, or what makes one"
            )
        return handler

    def make_dead_letters(self) -> DeadLetterSink | None:
        """Make the sink for events that are given up; nothing is opened yet."""
        if self.dead_letters is None:
            return None
        return load("deadLetters", self.dead_letters)()  # type: ignore[no-any-return]


def parse_sink_options(
    options: Mapping[str, str], *, handler: str | HandlerFactory | None = None
) -> SinkOptions:
    """Read and check the options of ``writeStream.format("eventproc")``.

    Args:
        options: By name.
        handler: Instead of the option of that name.

    Raises:
        ConfigurationError: an option is unknown, missing, or says what cannot work.
    """
    own = {name: options[name] for name in options if name.lower() not in SPARKS_OWN}
    given = Given(own, known=SINK_OPTIONS, part="sink")
    handler, store = handler or given.text("handler"), given.text("checkpointStore")
    if handler is None or store is None:
        raise ConfigurationError(
            "the sink needs the options handler (module:Class, importable on every executor) and "
            "checkpointStore (blob:CONTAINER, sqlite:PATH or module:function)"
        )
    connection, storage = given.text("connectionString"), given.text("storageConnectionString")
    return SinkOptions(
        handler=handler,
        group=GroupRecipe(
            consumer_group=given.text("consumerGroup") or "$Default",
            eventhub_name=given.text("eventHubName"),
            namespace=given.text("fullyQualifiedNamespace"),
            connection=None if connection is None else Secret(connection),
        ),
        store=StoreRecipe(spec=store, storage=None if storage is None else Secret(storage)),
        events_per_call_max=given.count("maxEventsPerCall") or EVENTS_PER_CALL,
        failure_policy=FailurePolicy(
            attempts_max=given.count("maxAttempts") or ATTEMPTS, then=_action(given)
        ),
        dead_letters=given.text("deadLetters"),
        defers_checkpoints=given.flag("deferCheckpoints", otherwise=False),
        patience=given.span("operationTimeout", otherwise=timedelta(minutes=1)),
    )


_ACTIONS: Final = {
    "stop": FailureAction.STOP,
    "skip": FailureAction.SKIP,
    "deadletter": FailureAction.DEAD_LETTER,
}


def _action(given: Given) -> FailureAction:
    text = (given.text("onFailure") or "stop").strip()
    if text.lower() not in _ACTIONS:
        raise ConfigurationError(f"onFailure is {text!r}: give stop, skip or deadLetter")
    return _ACTIONS[text.lower()]
