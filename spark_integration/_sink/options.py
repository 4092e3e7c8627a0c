"""The options of the sink, parsed and checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Final

from eventproc._base.settings import SECRET, Count, PositiveSpan, check_settings
from eventproc._delivery.checks import check_handler, check_made
from eventproc._delivery.config import FailureAction, FailurePolicy
from eventproc._delivery.handler import (
    BlockingPartitionHandler,
    HandlerFactory,
    PartitionHandler,
    defines_columns,
)
from eventproc._delivery.handler_threads import ThreadedHandler
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup
from eventproc.ports import DeadLetterSink
from eventproc.sources._connection_string import parse_connection_string
from spark_integration._option_names import naming_options
from spark_integration._options import (
    HUB_OPTIONS,
    SPARKS_OWN,
    STORE_OPTIONS,
    OptionReader,
    parse_hub,
    parse_store,
)
from spark_integration._recipes import (
    OF_STORAGE_ACCOUNT,
    HubRecipe,
    NetworkRecipe,
    StoreRecipe,
    load,
)
from spark_integration._secrets import Secret

SINK_OPTIONS: Final = (
    *HUB_OPTIONS,
    *STORE_OPTIONS,
    "handler",
    "consumerGroup",
    "maxEventsPerCall",
    "maxAttempts",
    "onFailure",
    "deadLetters",
    "deferCheckpoints",
    "operationTimeout",
)
"""Every option that the sink knows; ``docs/spark-sink.md`` explains them."""

_REFUSED: Final = dict.fromkeys(
    ("batchMin", "batchWait"),
    "is a setting of a processor: in Spark the rows of a micro-batch are all there, and a call "
    "does not wait for those of the next one. Use maxEventsPerCall for the size of a call, and the "
    "source's minOffsetsPerTrigger and maxTriggerDelay for that of a micro-batch",
)
"""Settings of a processor that the sink does not have, and the reason."""

_WITHOUT_EFFECT_WITHOUT_A_HUB: Final = dict.fromkeys(
    ("transport", "customEndpoint"),
    "has no effect without connectionString, because the sink connects to no hub then: remove it",
)

EVENTS_PER_CALL: Final = 300
"""Default of ``maxEventsPerCall``, the same as in a processor."""

ATTEMPTS: Final = 3
"""Default of ``maxAttempts``, for one event in one task. Spark also retries a failed task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecipe:
    """A consumer group of a hub, by names or by a connection string that has them."""

    consumer_group: str
    eventhub_name: str | None = None
    namespace: str | None = None
    connection: Annotated[Secret | None, SECRET] = None

    def __post_init__(self) -> None:
        """Check that either a connection string or a namespace with a hub is given."""
        check_settings(self)
        if self.connection is None or self.namespace is not None:
            self.make()  # It reads no secret.

    def make(self) -> ConsumerGroup:
        """Return the group, without connecting.

        Raises:
            ConfigurationError: the names are missing, or this machine does not have the secret.
        """
        if self.connection is not None and self.namespace is None:
            hub = parse_connection_string(self.connection.read(), self.eventhub_name)
            namespace, eventhub_name = hub.fully_qualified_namespace, hub.eventhub_name
        elif self.connection is not None or self.namespace is None:
            raise ConfigurationError(
                "which hub's checkpoints? Give the sink fullyQualifiedNamespace and eventHubName, "
                "or the source's connectionString (env:NAME, file:PATH, or the string itself)"
            )
        elif self.eventhub_name is None:
            raise ConfigurationError("fullyQualifiedNamespace needs the option eventHubName, too")
        else:
            namespace, eventhub_name = self.namespace, self.eventhub_name
        return ConsumerGroup(
            fully_qualified_namespace=namespace,
            eventhub_name=eventhub_name,
            name=self.consumer_group,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """The checked options. They can be pickled, and printing them shows no secret."""

    handler: str | HandlerFactory
    """``module:Class``; with ``CheckpointingSink`` also the class itself."""

    group: GroupRecipe
    store: StoreRecipe
    events_per_call_max: Count | None = None
    """By default ``EVENTS_PER_CALL`` events, or all rows of an Arrow batch as columns."""

    failure_policy: FailurePolicy = field(
        default_factory=lambda: FailurePolicy(attempts_max=ATTEMPTS)
    )
    dead_letters: str | None = None
    """The ``module:function`` that makes a ``DeadLetterSink``."""

    defers_checkpoints: bool = False
    hub: HubRecipe = field(default_factory=HubRecipe)
    """How the hub is reached, if the group is given by a connection string."""

    patience: PositiveSpan = timedelta(minutes=1)
    """How long the store may be unreachable before a task or a commit fails."""

    def __post_init__(self) -> None:
        """Check that the options are consistent."""
        check_settings(self)
        stores_dead_letters = self.failure_policy.action is FailureAction.DEAD_LETTER
        if stores_dead_letters != (self.dead_letters is not None):
            raise ConfigurationError(
                "onFailure=deadLetter and deadLetters=module:function need each other: give both"
            )
        if not isinstance(self.handler, str):
            check_handler(self.handler)
            _refuse_transactions(self.handler)

    def make_handler(self) -> PartitionHandler:
        """Make a handler for one partition.

        Raises:
            ConfigurationError: the class does not exist here, or is not a usable handler.
        """
        make = self._factory()
        check_handler(make)
        handler = make()
        check_made(handler)
        _refuse_transactions(handler)
        is_of_columns = defines_columns(type(handler))
        if is_of_columns and "value" in handler.columns:
            raise ConfigurationError(
                f"{type(handler).__name__} asks for the column 'value', and in Spark "
                "process_columns gets the columns of the query: decode the body there with "
                "from_json, or define process_value"
            )
        if isinstance(handler, BlockingPartitionHandler):
            handler = ThreadedHandler(handler)
        if not is_of_columns:
            return handler
        from spark_integration._sink.column_handler import ColumnHandler  # noqa: PLC0415 - Arrow

        return ColumnHandler(handler)

    def takes_columns(self) -> bool:
        """Whether the handler has ``process_columns``. If a function makes handlers, call it once.

        Raises:
            ConfigurationError: the class does not exist here.
        """
        make = self._factory()
        return defines_columns(make if isinstance(make, type) else type(make()))

    def _factory(self) -> HandlerFactory:
        return load("handler", self.handler) if isinstance(self.handler, str) else self.handler

    def make_dead_letters(self) -> DeadLetterSink | None:
        """Make the dead-letter sink, if one is given, without opening it."""
        return load("deadLetters", self.dead_letters)() if self.dead_letters else None


@naming_options()
def parse_sink_options(
    options: Mapping[str, str], *, handler: str | HandlerFactory | None = None
) -> SinkOptions:
    """Read and check the options of ``writeStream.format("eventproc")``.

    Args:
        options: The values by name.
        handler: The handler of a ``CheckpointingSink``, instead of the option ``handler``. If
            given, the options do not come from Spark, so Spark's own options are unknown.

    Raises:
        ConfigurationError: an option is unknown, missing or invalid.
    """
    is_from_spark = handler is None
    own = {n: options[n] for n in options if not (is_from_spark and n.lower() in SPARKS_OWN)}
    given = OptionReader(own, known=SINK_OPTIONS, part="sink", refused=_REFUSED)
    handler, store = handler or given.text("handler"), given.text("checkpointStore")
    if handler is None or store is None:
        raise ConfigurationError(
            "the sink needs the options handler (module:Class, importable on every executor) and "
            "checkpointStore (blob:CONTAINER, tables:TABLE, postgres:NAME, sqlite:PATH or "
            "module:function); or, to publish the "
            "rows, the option publish (eventhub, kafka or module:function)"
        )
    connection, hub = given.secret("connectionString"), parse_hub(given)
    if connection is None:
        given.refuse(_WITHOUT_EFFECT_WITHOUT_A_HUB)
    kind = store.partition(":")[0]
    is_of_store = connection is None or kind in OF_STORAGE_ACCOUNT
    recipe = parse_store(given, hub.network if is_of_store else NetworkRecipe())
    assert recipe is not None
    return SinkOptions(
        handler=handler,
        group=GroupRecipe(
            consumer_group=given.text("consumerGroup") or "$Default",
            eventhub_name=given.text("eventHubName"),
            namespace=given.text("fullyQualifiedNamespace"),
            connection=connection,
        ),
        store=recipe,
        events_per_call_max=given.count("maxEventsPerCall"),
        failure_policy=FailurePolicy(
            attempts_max=given.count("maxAttempts") or ATTEMPTS, action=_action(given)
        ),
        dead_letters=given.text("deadLetters"),
        defers_checkpoints=given.flag("deferCheckpoints", otherwise=False),
        hub=hub,
        patience=given.span("operationTimeout", otherwise=timedelta(minutes=1)),
    )


_ACTIONS: Final = {
    "stop": FailureAction.STOP,
    "skip": FailureAction.SKIP,
    "deadletter": FailureAction.DEAD_LETTER,
}


def _action(given: OptionReader) -> FailureAction:
    text = (given.text("onFailure") or "stop").strip()
    if text.lower() not in _ACTIONS:
        raise ConfigurationError(f"onFailure is {text!r}: give stop, skip or deadLetter")
    return _ACTIONS[text.lower()]


def _refuse_transactions(handler: object) -> None:
    """Refuse a handler that uses transactions, which a Spark sink does not have."""
    if getattr(handler, "uses_transactions", False) is True:
        raise ConfigurationError(
            "the handler uses transactions, which a Spark sink does not have: Spark commits a "
            "batch as a whole, after all of its tasks, and may run a task twice at once. Run the "
            "handler in an EventProcessor, or leave uses_transactions out and write rows under "
            "the key of their event, so that a repetition changes nothing"
        )
