"""The options of the source, parsed and checked. Pure.

An option that the Scala connector for Event Hubs also has, has the same name here. A name may have
the prefix ``eventhubs.``, and case does not matter, as everywhere in Spark.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Final, TypeVar

from eventproc._core.option_values import parse_duration
from eventproc.errors import ConfigurationError
from eventproc.models import EventPosition
from eventproc.sources.eventhubs import EventHubOptions, Transport
from eventproc.sources.eventhubs._options import PREFETCH_MAX
from spark_integration._option_names import naming_options
from spark_integration._positions import Positions, parse_positions
from spark_integration._recipes import (
    OF_STORAGE_ACCOUNT,
    HubRecipe,
    NetworkRecipe,
    SourceRecipe,
    StoreRecipe,
)
from spark_integration._secrets import Secret

HUB_OPTIONS: Final = (
    *("connectionString", "fullyQualifiedNamespace", "eventHubName"),
    *("caBundle", "proxy", "transport", "customEndpoint"),
)
"""Which event hub, and how it is reached: options of the source and of both sinks."""

STORE_OPTIONS: Final = ("checkpointStore", "storageConnectionString", "storageAccount")

SOURCE_OPTIONS: Final = (
    *HUB_OPTIONS,
    *STORE_OPTIONS,
    "sourceRecipe",
    "consumerGroup",
    "startingPosition",
    "startingPositions",
    "endingPosition",
    "endingPositions",
    "maxEventsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "alignBy",
    "maxTasks",
    "maxEventsPerTask",
    "failOnDataLoss",
    "compacted",
    "skipUndecodable",
    "useExclusiveReceiver",
    "prefetchCount",
    "operationTimeout",
    "receiverTimeout",
    "pollInterval",
)
"""Every option that the source knows; ``docs/spark-source.md`` explains them."""

EVENTS_PER_PARTITION: Final = 10_000
"""Most events of one partition in a micro-batch, unless ``maxEventsPerTrigger`` is given.

Reading them takes about 0.5 s for each partition; the fixed cost of a micro-batch is about 0.3 s.
"""

EnumT = TypeVar("EnumT", bound=Enum)

_WITHOUT_EFFECT_ON_A_STREAM: Final = dict.fromkeys(
    ("endingPosition", "endingPositions"),
    "has no effect on a stream, which has no end: remove it, or read a batch (spark.read)",
)
_WITHOUT_EFFECT_ON_A_BATCH: Final = {
    "maxEventsPerTrigger": "has no effect on a batch, which is read as a whole: remove it; to "
    "divide it into more tasks, give maxEventsPerTask",
    "minOffsetsPerTrigger": "has no effect on a batch, which does not wait: remove it",
    "maxTriggerDelay": "has no effect on a batch, which does not wait: remove it",
    "alignBy": "has no effect on a batch, which is read as a whole: remove it",
    "pollInterval": "has no effect on a batch, which asks the hub once: remove it",
}

_OF_A_WRITER: Final = {
    "checkpointLocation": "is an option of the query and not of its source: give it to writeStream",
}

_WITHOUT_EFFECT_WITHOUT_A_LEAST: Final = {
    "maxTriggerDelay": "has no effect without minOffsetsPerTrigger, for which a micro-batch waits: "
    "give both, or remove it",
}

_PREFIX: Final = "eventhubs."

SPARKS_OWN: Final = frozenset({"checkpointlocation", "queryname"})
"""Options for Spark itself. Spark passes them to a sink together with the sink's options."""


class Alignment(Enum):
    """How partitions share a micro-batch that cannot hold their whole backlog."""

    BACKLOG = "backlog"
    """Each in proportion to its backlog."""

    ENQUEUED_TIME = "enqueuedTime"
    """All end at the same enqueued time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The checked options. Printing them shows no secret."""

    source: SourceRecipe
    consumer_group: str
    starting: Positions
    ending: Positions
    store: StoreRecipe | None
    events_per_trigger_max: int | None
    events_per_trigger_min: int
    trigger_delay_max: timedelta
    """How long after a micro-batch the next one may wait for ``events_per_trigger_min`` events."""

    alignment: Alignment
    tasks_max: int | None
    events_per_task_max: int | None
    fails_on_data_loss: bool
    is_compacted: bool
    """Whether missing events were superseded by later ones of their keys, so none is lost."""

    skips_undecodable: bool
    """Whether events whose body or properties cannot be decoded are left out, and counted."""

    is_exclusive: bool
    prefetch: int
    patience: timedelta
    """How long the hub may be unreachable before a batch fails."""

    silence_max: timedelta
    """How long to wait for a planned event before asking the hub whether it still exists."""

    poll_interval: timedelta
    hub: HubRecipe
    """How the hub, and Entra ID, are reached."""

    def __post_init__(self) -> None:
        """Check that the options are consistent."""
        most = self.events_per_trigger_max
        if most is not None and self.events_per_trigger_min > most:
            raise ConfigurationError(
                f"minOffsetsPerTrigger is {self.events_per_trigger_min}, more than "
                f"maxEventsPerTrigger, which is {most}: give at most as many"
            )
        if self.prefetch > PREFETCH_MAX:
            raise ConfigurationError(
                f"prefetchCount is {self.prefetch}: give a whole number of at most {PREFETCH_MAX}"
            )
        by_checkpoints = self.starting.is_by_checkpoints or self.ending.is_by_checkpoints
        if self.store is not None and not by_checkpoints:
            raise ConfigurationError(
                "checkpointStore has no effect on a source whose positions do not come from "
                "checkpoints: set startingPositions=checkpoints, or remove it"
            )
        if by_checkpoints and self.store is None:
            raise ConfigurationError(
                "positions are to be read from checkpoints, but from which store? Give the option "
                "checkpointStore (sqlite:PATH, blob:CONTAINER, tables:TABLE, postgres:NAME or "
                "module:function)"
            )
        if self.tasks_max is not None and self.events_per_task_max is not None:
            raise ConfigurationError(
                "give maxTasks (partitions share tasks) or maxEventsPerTask (a partition is "
                "divided among several), not both"
            )
        if self.is_exclusive and self.events_per_task_max is not None:
            raise ConfigurationError(
                "useExclusiveReceiver allows one reader of a partition, but maxEventsPerTask "
                "creates several: give one of them"
            )

    def hub_options(self, *, prefetch: int | None = None) -> EventHubOptions:
        """Return the options of a connection; a receiver buffers at most ``prefetch`` events.

        Raises:
            ConfigurationError: this machine does not have the proxy's secret.
        """
        return self.hub.make(
            prefetch=max(1, min(self.prefetch, prefetch or self.prefetch)),
            is_exclusive=self.is_exclusive,
            tracks_last_enqueued=False,  # the driver requests the ends of partitions
        )


@naming_options()
def parse_source_options(options: Mapping[str, str], *, is_stream: bool | None) -> SourceOptions:
    """Read and check the options of ``format("eventproc")``.

    Args:
        options: the values by name.
        is_stream: ``None`` if it is not known yet; then options for streams only and options for
            batches only are both accepted.

    Raises:
        ConfigurationError: an option is unknown, invalid, or has no effect.
    """
    given = OptionReader(options, known=SOURCE_OPTIONS, part="source", refused=_OF_A_WRITER)
    if is_stream is not None:
        given.refuse(_WITHOUT_EFFECT_ON_A_STREAM if is_stream else _WITHOUT_EFFECT_ON_A_BATCH)
    if given.text("minOffsetsPerTrigger") is None:
        given.refuse(_WITHOUT_EFFECT_WITHOUT_A_LEAST)
    hub = parse_hub(given)
    kind, _, _ = (given.text("checkpointStore") or "").partition(":")
    return SourceOptions(
        source=SourceRecipe(
            connection=given.secret("connectionString"),
            namespace=given.text("fullyQualifiedNamespace"),
            eventhub_name=given.text("eventHubName"),
            function=given.text("sourceRecipe"),
        ),
        consumer_group=given.text("consumerGroup") or "$Default",
        starting=parse_positions(
            "startingPosition",
            given.text("startingPosition"),
            given.text("startingPositions"),
            otherwise=EventPosition.latest() if is_stream else EventPosition.earliest(),
        ),
        ending=parse_positions(
            "endingPosition",
            given.text("endingPosition"),
            given.text("endingPositions"),
            otherwise=EventPosition.latest(),
        ),
        store=parse_store(given, hub.network if kind in OF_STORAGE_ACCOUNT else NetworkRecipe()),
        events_per_trigger_max=given.count("maxEventsPerTrigger"),
        events_per_trigger_min=given.count("minOffsetsPerTrigger") or 1,
        trigger_delay_max=given.span("maxTriggerDelay", otherwise=timedelta(minutes=15)),
        alignment=given.one_of("alignBy", Alignment, otherwise=Alignment.BACKLOG),
        tasks_max=given.count("maxTasks"),
        events_per_task_max=given.count("maxEventsPerTask"),
        fails_on_data_loss=given.flag("failOnDataLoss", otherwise=True),
        is_compacted=given.flag("compacted", otherwise=False),
        skips_undecodable=given.flag("skipUndecodable", otherwise=False),
        is_exclusive=given.flag("useExclusiveReceiver", otherwise=False),
        prefetch=given.count("prefetchCount") or PREFETCH_MAX,
        patience=given.span("operationTimeout", otherwise=timedelta(minutes=5)),
        silence_max=given.span("receiverTimeout", otherwise=timedelta(seconds=10)),
        poll_interval=given.span("pollInterval", otherwise=timedelta(seconds=1)),
        hub=hub,
    )


class OptionReader:
    """Typed access to options, by name without case and prefix."""

    def __init__(
        self,
        options: Mapping[str, str],
        *,
        known: Sequence[str],
        part: str,
        refused: Mapping[str, str] | None = None,
    ) -> None:
        """Check that the *part* (``source`` or ``sink``) knows every option.

        *refused* has options that do not exist here but elsewhere, and the reason to show for each.
        """
        self._values = {name.lower().removeprefix(_PREFIX): options[name] for name in options}
        self.refuse(refused or {})
        name_by_lower = {name.lower(): name for name in known}
        for name in sorted(set(self._values) - set(name_by_lower)):
            close = difflib.get_close_matches(name, name_by_lower, n=1)
            remedy = f"did you mean {name_by_lower[close[0]]}?" if close else "remove it."
            raise ConfigurationError(
                f"{name!r} is not an option of the eventproc {part}: {remedy} The options are "
                f"{', '.join(known)}"
            )

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """Raise ``ConfigurationError`` if one of these options is given, with its reason."""
        for name, reason in reasons.items():
            if self.text(name) is not None:
                raise ConfigurationError(f"{name} {reason}")

    def text(self, name: str) -> str | None:
        """Return the option as it was given, or ``None``."""
        return self._values.get(name.lower())

    def secret(self, name: str) -> Secret | None:
        """Return a secret or a reference to it, or ``None``."""
        text = self.text(name)
        return None if text is None else Secret(text)

    def count(self, name: str) -> int | None:
        """Return a whole number of 1 or more, or ``None``."""
        text = self.text(name)
        if text is None:
            return None
        if not text.strip().isdecimal() or int(text) < 1:
            raise ConfigurationError(f"{name} is {text!r}: give a whole number of 1 or more")
        return int(text)

    def flag(self, name: str, *, otherwise: bool) -> bool:
        """Return a boolean option."""
        text = self.text(name)
        if text is None:
            return otherwise
        if text.strip().lower() not in {"true", "false"}:
            raise ConfigurationError(f"{name} is {text!r}: give true or false")
        return text.strip().lower() == "true"

    def one_of(self, name: str, kind: type[EnumT], *, otherwise: EnumT) -> EnumT:
        """Return the member of an enumeration with this value, in any case."""
        text = self.text(name)
        if text is None:
            return otherwise
        by_value = {str(choice.value).lower(): choice for choice in kind}
        if text.strip().lower() not in by_value:
            *others, last = (choice.value for choice in kind)
            raise ConfigurationError(f"{name} is {text!r}: give {', '.join(others)} or {last}")
        return by_value[text.strip().lower()]

    def span(self, name: str, *, otherwise: timedelta) -> timedelta:
        """Return a duration above zero."""
        text = self.text(name)
        if text is None:
            return otherwise
        span = parse_duration(name, text)
        if not span:
            raise ConfigurationError(f"{name} is {text!r}: give a duration above zero, such as 10s")
        return span


@naming_options()
def parse_hub(given: OptionReader) -> HubRecipe:
    """Parse the options that say how a hub is reached.

    Raises:
        ConfigurationError: the proxy is not an address, or there is no such transport.
    """
    return HubRecipe(
        network=NetworkRecipe(ca_bundle=given.text("caBundle"), proxy=given.secret("proxy")),
        transport=given.one_of("transport", Transport, otherwise=Transport.AMQP),
        custom_endpoint=given.text("customEndpoint"),
    )


def parse_store(given: OptionReader, network: NetworkRecipe) -> StoreRecipe | None:
    """Parse ``checkpointStore`` and the options that say how its storage account is reached.

    Raises:
        ConfigurationError: they are inconsistent.
    """
    spec = given.text("checkpointStore")
    if spec is None:
        reason = "has no effect without checkpointStore=blob:CONTAINER or tables:TABLE: give both"
        given.refuse(dict.fromkeys(("storageConnectionString", "storageAccount"), reason))
        return None
    return StoreRecipe(
        spec=spec,
        storage=given.secret("storageConnectionString"),
        account=given.text("storageAccount"),
        network=network,
    )
