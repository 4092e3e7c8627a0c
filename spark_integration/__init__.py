"""Event Hubs in Apache Spark: a source, two sinks, and processors that run on executors.

``register(spark)`` makes ``format("eventproc")`` known to a session, for reading and for writing:
rows are handed to a handler, or published to a hub or a Kafka topic (option ``publish``);
``CheckpointingSink`` is the sink for ``foreachBatch``; ``run_on_executors(spark, ...)`` starts a
fleet of processors. The pages that ``docs/spark.md`` names say what each of them guarantees.

Importing this package needs neither PySpark nor Java, and takes a few milliseconds: a name is
imported when it is first used. Each of Spark's Python processes imports this package, and most need
little of it.
"""

import importlib
import typing

if typing.TYPE_CHECKING:  # For type checkers, editors and the documentation; `__getattr__` below.
    from spark_integration._errors import (
        EventsLostError,
        FencedError,
        HandlerFailedError,
        OrderLostError,
        PublishFailedError,
        RefusedInSparkError,
    )
    from spark_integration._fleet.fleet import Fleet
    from spark_integration._fleet.launch import run_on_executors
    from spark_integration._fleet.statistics import FleetError, FleetMember, FleetStatistics, Phase
    from spark_integration._recipes import NetworkRecipe, SourceRecipe, StoreRecipe
    from spark_integration._registration import register
    from spark_integration._secrets import Secret
    from spark_integration._sink.records import BatchSummary
    from spark_integration._sink.sink import CheckpointingSink

__all__ = [
    "BatchSummary",
    "CheckpointingSink",
    "EventsLostError",
    "FencedError",
    "Fleet",
    "FleetError",
    "FleetMember",
    "FleetStatistics",
    "HandlerFailedError",
    "NetworkRecipe",
    "OrderLostError",
    "Phase",
    "PublishFailedError",
    "RefusedInSparkError",
    "Secret",
    "SourceRecipe",
    "StoreRecipe",
    "register",
    "run_on_executors",
]

_MODULES = (
    *("_errors", "_secrets", "_recipes", "_registration", "_sink.records", "_sink.sink"),
    *("_fleet.statistics", "_fleet.fleet", "_fleet.launch"),
)
"""The modules with the public names, searched in this order: from cheap to costly imports."""

if not typing.TYPE_CHECKING:  # With a __getattr__, type checkers would accept any name.

    def __getattr__(name: str) -> object:
        """Import a name when it is first used."""
        if name in __all__:
            for below in _MODULES:
                module = importlib.import_module(f"{__name__}.{below}")
                if hasattr(module, name):
                    return globals().setdefault(name, getattr(module, name))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        """Return the names of the module, including those that are not imported yet."""
        return sorted({*globals(), *__all__})
