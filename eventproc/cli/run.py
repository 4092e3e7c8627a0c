"""``eventproc run``: a handler of the user's as a process of its own."""

from enum import StrEnum
from typing import Annotated

import typer

from eventproc.cli import delivery, options
from eventproc.cli.dead_letters import make_sink
from eventproc.cli.end_of_input import stop_at_end_of_input
from eventproc.cli.exits import OK
from eventproc.cli.handlers import load_handler
from eventproc.cli.log_lines import LogFormat, LogLevel, log_to_stderr
from eventproc.cli.sources import make_source
from eventproc.cli.stores import open_store
from eventproc.cli.values import parse_duration, parse_position
from eventproc.config import CheckpointPolicy, EventProcessorConfig
from eventproc.membership import LeaseMode
from eventproc.models import LoadBalancingStrategy
from eventproc.processor import EventProcessor


class Strategy(StrEnum):
    """How partitions change hands."""

    COOPERATIVE = "cooperative"
    GREEDY = "greedy"
    BALANCED = "balanced"


class Leases(StrEnum):
    """What keeps an ownership alive."""

    PARTITION = "partition"
    SESSION = "session"


def run(
    handler: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:CLASS",
            help="Your handler: orders:OrderHandler is the class OrderHandler in orders.py, in "
            "this folder or in an installed package.",
        ),
    ],
    store: options.StoreSpec,
    eventhub: options.EventHub = "",
    consumer_group: options.ConsumerGroupName = "$Default",
    connection_string: options.ConnectionString = "",
    storage_connection_string: options.StorageConnectionString = "",
    create_container: Annotated[
        bool, typer.Option("--create-container", help="Create the blob container if need be.")
    ] = False,
    owner_id: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_OWNER_ID",
            metavar="NAME",
            help="A name that stays the same over restarts, such as a pod's. Drawn if not given.",
            show_default=False,
        ),
    ] = "",
    generation: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_GENERATION",
            metavar="NAME",
            help="The deployment this process belongs to, such as its image's tag. While others of "
            "another generation are there, it waits in reserve for one of them to go.",
            show_default=False,
        ),
    ] = "",
    keep_on_stop: Annotated[
        bool,
        typer.Option(
            "--keep-on-stop",
            help="Leave the partitions to this process's next start under the same --owner-id.",
        ),
    ] = False,
    start: Annotated[
        str,
        typer.Option(
            metavar="POSITION",
            help="Where to begin a partition without a checkpoint: earliest, latest, a time "
            "(2026-01-31T08:00:00Z) or a sequence number.",
        ),
    ] = "earliest",
    strategy: Annotated[
        Strategy, typer.Option(help="How partitions change hands.")
    ] = Strategy.COOPERATIVE,
    interval: Annotated[
        str, typer.Option(metavar="DURATION", help="Between two looks at the group.")
    ] = "10s",
    expiration: options.Expiration = "60s",
    lease_mode: Annotated[
        Leases, typer.Option(help="What is renewed: each partition's record, or one per process.")
    ] = Leases.PARTITION,
    shutdown_timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="What a stop may take at most.")
    ] = "30s",
    checkpoint_events: Annotated[
        int, typer.Option(metavar="N", help="Store progress after so many events, ...")
    ] = 1000,
    checkpoint_interval: Annotated[
        str, typer.Option(metavar="DURATION", help="... or after this long, and at every close.")
    ] = "5s",
    key_lanes: delivery.KeyLanes = 1,
    key_property: delivery.KeyProperty = "",
    attempts: delivery.Attempts = None,
    deliveries: delivery.Deliveries = None,
    give_up: delivery.GiveUpOption = None,
    dead_letters: delivery.DeadLetters = "",
    stall_timeout: delivery.StallTimeout = "",
    rate: delivery.Rate = None,
    partition_rate: delivery.PartitionRate = None,
    log_format: Annotated[
        LogFormat, typer.Option(help="auto: text on a terminal, JSON otherwise.")
    ] = LogFormat.AUTO,
    log_level: Annotated[LogLevel, typer.Option(help="On standard error.")] = LogLevel.INFO,
    stop_at_eof: Annotated[
        bool,
        typer.Option(
            "--stop-at-eof", help="Stop when standard input ends, too: for programs that start it."
        ),
    ] = False,
) -> int:
    """Run your handler on this process's share of an event hub's partitions.

    Start as many of these as you like, anywhere: those with the same event hub, consumer group and
    store share the partitions. SIGTERM or Ctrl+C stops one in good order: it finishes the calls
    under way, stores progress and hands its partitions over. A second signal ends it at once.

    Secrets come from the environment: EVENTPROC_CONNECTION_STRING for Event Hubs,
    EVENTPROC_STORAGE_CONNECTION_STRING for --store blob:...

    Exit codes: 0 stopped in good order, 1 failed, 2 something given cannot work, 3 the store or
    the hub did not answer at the start.
    """
    handler_class = load_handler(handler)
    config = EventProcessorConfig(
        load_balancing_strategy=LoadBalancingStrategy(strategy.value),
        load_balancing_interval=parse_duration("--interval", interval),
        ownership_expiration=parse_duration("--expiration", expiration),
        lease_mode=LeaseMode(lease_mode.value),
        generation=generation,
        keeps_ownership_on_stop=keep_on_stop,
        shutdown_timeout=parse_duration("--shutdown-timeout", shutdown_timeout),
        initial_position=parse_position("--start", start),
        checkpoint_policy=CheckpointPolicy(
            every_events=checkpoint_events,
            every=parse_duration("--checkpoint-interval", checkpoint_interval),
        ),
        key_lanes=key_lanes,
        key_of=delivery.key_of(key_property, key_lanes),
        failure_policy=delivery.failure_policy(attempts, deliveries, give_up, dead_letters),
        stall_timeout=parse_duration("--stall-timeout", stall_timeout) if stall_timeout else None,
        rate_max=rate,
        partition_rate_max=partition_rate,
    )
    processor = EventProcessor(
        source=make_source(connection_string, eventhub),
        store=open_store(
            store,
            storage_connection_string=storage_connection_string,
            create_container=create_container,
        ),
        handler=handler_class,
        dead_letters=make_sink(
            dead_letters,
            connection_string=connection_string,
            storage_connection_string=storage_connection_string,
        ),
        consumer_group=consumer_group,
        owner_id=owner_id or None,
        config=config,
    )
    log_to_stderr(log_format, log_level)
    if stop_at_eof:
        stop_at_end_of_input()
    processor.run()
    return OK
