"""Where a fleet is asked for, and what is refused before anything runs."""

import secrets
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from eventproc.config import EventProcessorConfig
from eventproc.door import check_owner_id
from eventproc.errors import ConfigurationError
from eventproc.handler import HandlerFactory
from eventproc.sources.eventhubs import EventHubOptions
from spark_integration.fleet import Fleet, Progress
from spark_integration.fleet_board import FleetBoard
from spark_integration.fleet_desk import FleetDesk
from spark_integration.fleet_order import FleetOrder, FleetWork
from spark_integration.fleet_spark import FleetSpark
from spark_integration.recipes import SourceRecipe, StoreRecipe

if TYPE_CHECKING:  # importing this package needs neither Spark nor Java
    from pyspark.sql import SparkSession

STOP_EXTRA: Final = timedelta(seconds=5)
"""What a processor's end may take beyond its ``shutdown_timeout``: its store, its connections."""


def run_on_executors(
    spark: "SparkSession",
    *,
    processors: int,
    source: SourceRecipe,
    store: StoreRecipe,
    handler: HandlerFactory | str,
    dead_letters: str | None = None,
    consumer_group: str = "$Default",
    config: EventProcessorConfig | None = None,
    hub_options: EventHubOptions | None = None,
    name: str | None = None,
    driver_port: int = 0,
    driver_patience: timedelta = timedelta(minutes=2),
    start_timeout: timedelta = timedelta(minutes=2),
    progress_interval: timedelta = timedelta(seconds=30),
    on_progress: Progress | None = None,
) -> Fleet:
    """Run processors on the executors of a Spark application; return when all of them serve.

    Args:
        spark: A classic session: its Python is the driver, which is not so with Spark Connect.
        processors: How many. Each holds a place (``spark.task.cpus``) for as long as it runs.
        source: Where events come from.
        store: Where the group keeps ownership and checkpoints.
        handler: Makes the handler of a partition: a class or function, or its ``module:name``.
        dead_letters: ``module:function`` that makes a ``DeadLetterSink``.
        consumer_group: Whose ownership and checkpoints these are.
        config: Every other setting of the processors.
        hub_options: Every setting of their sources.
        name: What the fleet is called. The processors' owner ids are this and a number, so with a
            name of its own a fleet takes up what it had when its application starts again; no two
            live fleets of a group may have the same. The application's id if not given.
        driver_port: Where processors report to the driver; any free port if 0.
        driver_patience: How long the driver may be out of reach before a processor stops.
        start_timeout: How long all processors may take until they serve.
        progress_interval: Between two lines of progress.
        on_progress: Gets the fleet's statistics for each; ``print`` shows them. If not given,
            ``fleet_progress`` is logged.

    Raises:
        ConfigurationError: something given cannot work here or on the executors, or Spark has no
            place for so many processors.
        FleetError: a processor could not start: the hub or the store did not answer.
    """
    config = config or EventProcessorConfig()
    hosting = FleetSpark(spark)
    title = name if name is not None else f"spark-{hosting.application_id}"
    check_owner_id(title)
    if processors < 1:
        raise ConfigurationError(f"processors is {processors}: give 1 or more")
    for what, span in (
        ("driver_patience", driver_patience),
        ("start_timeout", start_timeout),
        ("progress_interval", progress_interval),
    ):
        if span <= timedelta(0):
            raise ConfigurationError(f"{what} is {span}: give a positive time")
    if config.keeps_ownership_on_stop and name is None:
        raise ConfigurationError(
            "keeps_ownership_on_stop needs a name that stays the same over restarts: give the "
            "fleet one, or nobody could take up what its processors kept"
        )
    hosting.check(processors)
    work = FleetWork(
        source=source,
        store=store,
        handler=handler,
        dead_letters=dead_letters,
        consumer_group=consumer_group,
        config=config,
        hub_options=hub_options or EventHubOptions(),
    )
    fleet = _assemble(
        hosting, work, title, size=processors, port=driver_port, driver_patience=driver_patience
    )
    fleet.start(start_timeout)
    fleet.report_progress(progress_interval, on_progress)
    return fleet


def _assemble(
    hosting: FleetSpark,
    work: FleetWork,
    name: str,
    *,
    size: int,
    port: int,
    driver_patience: timedelta,
) -> Fleet:
    board = FleetBoard(name, size, clock=time.monotonic)
    token = secrets.token_hex(16)
    pickled = hosting.pickle(work)
    try:
        desk = FleetDesk(hosting.bind_address, port, token=token, on_report=board.note)
    except OSError as error:
        raise ConfigurationError(
            f"the driver cannot listen on {hosting.bind_address}, port {port}: {error}. Give "
            "another driver_port; the address is spark.driver.bindAddress"
        ) from error
    order = FleetOrder(
        name=name,
        host=hosting.driver_host,
        port=desk.port,
        token=token,
        driver_patience=driver_patience,
        stop_timeout=work.config.shutdown_timeout + STOP_EXTRA,
        work=pickled,
    )
    return Fleet(hosting, order, board, desk, size=size)
