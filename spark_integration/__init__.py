"""Event hubs inside Spark: ``register(spark)`` makes ``format("eventproc")`` known.

``run_on_executors(spark, ...)`` runs a fleet of processors there.

Importing this package needs neither PySpark nor Java. ``docs/spark.md`` says what you may rely on.

For whatever else is to run inside Spark, this is there to build on:

- ``Secret``, ``SourceRecipe``, ``StoreRecipe``: what travels to other machines instead of a
  connection. ``recipe.make()`` gives an async context manager there.
- ``options.parse_source_options``: options with the checks at the door; unknown ones are refused.
- ``worker.settle_in``: first call in every Python process of Spark.
- ``planning``, ``offsets``, ``positions``: pure; ``reading.read_ranges``: exact, without Spark.
- ``columns.SCHEMA``: the columns, in the order in which every part of the package has them.

Modules that import ``pyspark`` or ``pyarrow`` stand above all others: ``columns``, ``tasks``, the
readers, ``datasource``.
"""

from spark_integration.errors import (
    EventsLostError,
    FencedError,
    HandlerFailedError,
    OrderLostError,
    RefusedInSparkError,
)
from spark_integration.fleet import Fleet
from spark_integration.fleet_door import run_on_executors
from spark_integration.fleet_status import FleetError, FleetMember, FleetStatistics, Phase
from spark_integration.recipes import SourceRecipe, StoreRecipe
from spark_integration.registration import register
from spark_integration.secrets import Secret
from spark_integration.sink import CheckpointingSink
from spark_integration.sink_records import BatchSummary

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
    "OrderLostError",
    "Phase",
    "RefusedInSparkError",
    "Secret",
    "SourceRecipe",
    "StoreRecipe",
    "register",
    "run_on_executors",
]
