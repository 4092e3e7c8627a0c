"""The options of the source: one frozen value, checked when it is built. Pure.

Names are those of the Scala connector for Event Hubs where it has them; ``eventhubs.`` may stand
before any of them, and case does not matter, as everywhere in Spark.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from eventproc.errors import ConfigurationError
from eventproc.models import EventPosition
from eventproc.sources.eventhubs import EventHubOptions
from spark_integration.positions import Positions, parse_positions
from spark_integration.recipes import SourceRecipe, StoreRecipe
from spark_integration.secrets import Secret

SOURCE_OPTIONS: Final = (
    "connectionString",
    "eventHubName",
    "sourceRecipe",
    "consumerGroup",
    "startingPosition",
    "startingPositions",
    "endingPosition",
    "endingPositions",
    "checkpointStore",
    "storageConnectionString",
    "maxEventsPerTrigger",
    "maxTasks",
    "maxEventsPerTask",
    "failOnDataLoss",
    "useExclusiveReceiver",
    "prefetchCount",
    "operationTimeout",
    "receiverTimeout",
    "pollInterval",
)
"""Every option that the source knows; ``docs/spark.md`` explains them."""

EVENTS_PER_PARTITION: Final = 10_000
"""In a micro-batch, unless ``maxEventsPerTrigger`` says something else: half a second of reading
for each partition, against some 0.3 s that any micro-batch costs."""

_PREFIX: Final = "eventhubs."
_DURATION: Final = re.compile(r"(?:PT)?(\d+(?:\.\d+)?)\s*(ms|s|m|h)?", re.IGNORECASE)
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What the source was told. Printing it shows no secret."""

    source: SourceRecipe
    consumer_group: str
    starting: Positions
    ending: Positions
    store: StoreRecipe | None
    events_per_trigger_max: int | None
    tasks_max: int | None
    events_per_task_max: int | None
    fails_on_data_loss: bool
    is_exclusive: bool
    prefetch: int
    patience: timedelta
    """How long the hub may be out of reach before a batch fails."""

    silence_max: timedelta
    """How long a planned event may take to come before the receiver is doubted."""

    poll_interval: timedelta

    def __post_init__(self) -> None:
        """Refuse what does not fit together."""
        by_checkpoints = self.starting.is_by_checkpoints or self.ending.is_by_checkpoints
        if by_checkpoints and self.store is None:
            raise ConfigurationError(
                "positions are to come from checkpoints: which store? Give the option "
                "checkpointStore (sqlite:PATH, blob:CONTAINER or module:function)"
            )
        if self.tasks_max is not None and self.events_per_task_max is not None:
            raise ConfigurationError(
                "give maxTasks (partitions share tasks) or maxEventsPerTask (partitions are cut "
                "into several), not both"
            )
        if self.is_exclusive and self.events_per_task_max is not None:
            raise ConfigurationError(
                "useExclusiveReceiver allows one reader of a partition, and maxEventsPerTask "
                "makes several: give one of them"
            )

    def hub_options(self, *, prefetch: int | None = None) -> EventHubOptions:
        """How to connect; a receiver holds at most ``prefetch`` events in memory."""
        return EventHubOptions(
            prefetch=max(1, min(self.prefetch, prefetch or self.prefetch)),
            is_exclusive=self.is_exclusive,
        )


def parse_source_options(options: Mapping[str, str], *, is_stream: bool) -> SourceOptions:
    """Read and check the options of ``format("eventproc")``.

    Raises:
        ConfigurationError: an option is unknown, or says what cannot work.
    """
    given = Given(options, known=SOURCE_OPTIONS, part="source")
    storage = given.text("storageConnectionString")
    connection = given.text("connectionString")
    store = given.text("checkpointStore")
    return SourceOptions(
        source=SourceRecipe(
            connection=None if connection is None else Secret(connection),
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
        store=None
        if store is None
        else StoreRecipe(spec=store, storage=None if storage is None else Secret(storage)),
        events_per_trigger_max=given.count("maxEventsPerTrigger"),
        tasks_max=given.count("maxTasks"),
        events_per_task_max=given.count("maxEventsPerTask"),
        fails_on_data_loss=given.flag("failOnDataLoss", otherwise=True),
        is_exclusive=given.flag("useExclusiveReceiver", otherwise=False),
        prefetch=given.count("prefetchCount") or EventHubOptions().prefetch,
        patience=given.span("operationTimeout", otherwise=timedelta(minutes=5)),
        silence_max=given.span("receiverTimeout", otherwise=timedelta(seconds=10)),
        poll_interval=given.span("pollInterval", otherwise=timedelta(seconds=1)),
    )


class Given:
    """Options by their names in lower case, without prefix."""

    def __init__(self, options: Mapping[str, str], *, known: Sequence[str], part: str) -> None:
        """Refuse options that the *part* (``source`` or ``sink``) does not know."""
        self._values = {name.lower().removeprefix(_PREFIX): options[name] for name in options}
        name_by_lower = {name.lower(): name for name in known}
        for name in sorted(set(self._values) - set(name_by_lower)):
            close = difflib.get_close_matches(name, name_by_lower, n=1)
            remedy = f"did you mean {name_by_lower[close[0]]}?" if close else "remove it"
            raise ConfigurationError(
                f"{name!r} is no option of the eventproc {part}: {remedy} The options are "
                f"{', '.join(known)}"
            )

    def text(self, name: str) -> str | None:
        """Return what was given, or ``None``."""
        return self._values.get(name.lower())

    def count(self, name: str) -> int | None:
        """Return a whole number from 1 on."""
        text = self.text(name)
        if text is None:
            return None
        if not text.strip().isdecimal() or int(text) < 1:
            raise ConfigurationError(f"{name} is {text!r}: give a whole number from 1 on")
        return int(text)

    def flag(self, name: str, *, otherwise: bool) -> bool:
        """Return true or false."""
        text = self.text(name)
        if text is None:
            return otherwise
        if text.strip().lower() not in {"true", "false"}:
            raise ConfigurationError(f"{name} is {text!r}: give true or false")
        return text.strip().lower() == "true"

    def span(self, name: str, *, otherwise: timedelta) -> timedelta:
        """Return a duration above zero."""
        text = self.text(name)
        if text is None:
            return otherwise
        match = _DURATION.fullmatch(text.strip())
        if match is None or not float(match[1]):
            raise ConfigurationError(
                f"{name} is {text!r}: give a duration such as 500ms, 10s, 2m or PT10S"
            )
        return timedelta(seconds=float(match[1]) * _UNITS[(match[2] or "s").lower()])
