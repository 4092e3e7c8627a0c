"""``run_on_executors``: checks the arguments and starts a fleet."""

import secrets
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

from eventproc._base.settings import Count, PositiveSpan, Within, checked
from eventproc._delivery.checks import check_handler, check_owner_id
from eventproc._delivery.config import EventProcessorConfig
from eventproc._delivery.handler import HandlerFactory
from eventproc.errors import ConfigurationError
from eventproc.sources.eventhubs import EventHubOptions
from spark_integration._fleet.fleet import Fleet, Progress
from spark_integration._fleet.job import FleetJob, FleetWork
from spark_integration._fleet.jobs import FleetSpark
from spark_integration._fleet.members import MemberRegistry
from spark_integration._fleet.report_server import ReportServer
from spark_integration._recipes import SourceRecipe, StoreRecipe

if TYPE_CHECKING:  # importing this package needs neither Spark nor Java
    from pyspark.sql import SparkSession

STOP_EXTRA: Final = timedelta(seconds=5)
"""How long closing store and connections may take, on top of ``shutdown_timeout``."""


@checked
def run_on_executors(
    spark: "SparkSession",
    *,
    processors: Count,
    source: SourceRecipe,
    store: StoreRecipe,
    handler: HandlerFactory | str,
    dead_letters: str | None = None,
    consumer_group: str = "$Default",
    config: EventProcessorConfig | None = None,
    hub_options: EventHubOptions | None = None,
    name: str | None = None,
    driver_port: Annotated[int, Within(least=0, most=65535)] = 0,
    driver_patience: PositiveSpan = timedelta(minutes=2),
    start_timeout: PositiveSpan = timedelta(minutes=2),
    progress_interval: PositiveSpan = timedelta(seconds=30),
    on_progress: Progress | None = None,
) -> Fleet:
    """Run processors on the executors of a Spark application; return when all of them serve.

    Args:
        spark: A classic session, whose driver is this Python program; not one of Spark Connect.
        processors: How many. Each occupies a task slot (``spark.task.cpus``) while it runs.
        source: Where events come from.
        store: Where the group keeps ownership and checkpoints.
        handler: A class or function that makes the handler of a partition, or its
            ``module:name``.
        dead_letters: ``module:function`` that makes a ``DeadLetterSink``.
        consumer_group: The consumer group that the processors join.
        config: Every other setting of the processors.
        hub_options: Every setting of their sources.
        name: The fleet's name. Owner ids are the name and a number, so a fleet with a name of its
            own gets its former partitions back when its application starts again. Two live fleets
            of one consumer group must have different names. Default: the application's id.
        driver_port: The driver's TCP port for reports of the processors; any free port if 0.
        driver_patience: How long the driver may be unreachable before a processor stops.
        start_timeout: How long it may take until all processors serve.
        progress_interval: The time between two progress reports.
        on_progress: Called with the fleet's statistics for each report, for example ``print``. If
            not given, ``fleet_progress`` is logged.

    Raises:
        ConfigurationError: an argument cannot work here or on the executors, or Spark has too few
            task slots.
        FleetError: a processor could not start, for example because the hub did not answer.
    """
    config = config or EventProcessorConfig()
    application = FleetSpark(spark)
    fleet_name = name if name is not None else f"spark-{application.application_id}"
    check_owner_id(fleet_name)
    if not isinstance(handler, str):
        check_handler(handler, key_concurrency=config.key_concurrency)
    if config.static_membership and name is None:
        raise ConfigurationError(
            "static_membership needs a name that stays the same over restarts: give the "
            "fleet one, so that its next start gets the partitions that this one keeps"
        )
    application.check(processors)
    work = FleetWork(
        source=source,
        store=store,
        handler=handler,
        dead_letters=dead_letters,
        consumer_group=consumer_group,
        config=config,
        hub_options=hub_options or EventHubOptions(),
    )
    fleet = _build_fleet(
        application,
        work,
        fleet_name,
        size=processors,
        port=driver_port,
        driver_patience=driver_patience,
    )
    fleet.start(start_timeout)
    fleet.report_progress(progress_interval, on_progress)
    return fleet


run_on_executors.__module__ = "spark_integration"


def _build_fleet(
    application: FleetSpark,
    work: FleetWork,
    name: str,
    *,
    size: int,
    port: int,
    driver_patience: timedelta,
) -> Fleet:
    registry = MemberRegistry(name, size, clock=time.monotonic)
    token = secrets.token_hex(16)
    pickled = application.pickle(work)
    try:
        report_server = ReportServer(
            application.bind_address, port, size=size, token=token, on_report=registry.note
        )
    except OSError as error:
        raise ConfigurationError(
            f"the driver cannot listen on {application.bind_address}, port {port}: {error}. Give "
            "another driver_port; the address is spark.driver.bindAddress"
        ) from error
    job = FleetJob(
        name=name,
        host=application.driver_host,
        port=report_server.port,
        token=token,
        driver_patience=driver_patience,
        stop_timeout=work.config.shutdown_timeout + STOP_EXTRA,
        work=pickled,
    )
    return Fleet(application, job, registry, report_server, size=size)
