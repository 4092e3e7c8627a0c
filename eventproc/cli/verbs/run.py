"""``eventproc run``: run the user's handler in a processor, one for each process."""

from enum import StrEnum
from typing import Annotated

import typer

from eventproc.cli.arguments import delivery, options
from eventproc.cli.arguments.dead_letters import make_sink
from eventproc.cli.arguments.handlers import load_handler
from eventproc.cli.arguments.sources import make_source
from eventproc.cli.arguments.stores import open_store
from eventproc.cli.arguments.values import parse_duration, parse_position
from eventproc.cli.terminal.end_of_input import stop_at_end_of_input
from eventproc.cli.terminal.exits import FAILED, OK, print_error
from eventproc.cli.terminal.log_lines import LogFormat, LogLevel, log_to_stderr
from eventproc.config import REBALANCE_INTERVAL, CheckpointPolicy, EventProcessorConfig
from eventproc.models import LeaseMode, LoadBalancingStrategy
from eventproc.processor import EventProcessor
from eventproc.runtime.descriptors import raise_soft_limit


class Strategy(StrEnum):
    """``LoadBalancingStrategy``, as the command line spells it."""

    COOPERATIVE = "cooperative"
    GREEDY = "greedy"
    BALANCED = "balanced"


class Mode(StrEnum):
    """``LeaseMode``, as the command line spells it."""

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
        bool,
        typer.Option("--create-container", help="Create the blob container if it does not exist."),
    ] = False,
    owner_id: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_OWNER_ID",
            metavar="NAME",
            help="The name of this processor in the group. Give one that stays the same over "
            "restarts, such as the name of a pod. By default a new one is generated.",
            show_default=False,
        ),
    ] = "",
    deployment_id: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_DEPLOYMENT_ID",
            metavar="NAME",
            help="The deployment that this process belongs to, such as the tag of its image. While "
            "processors of another deployment are running, it waits on standby until one leaves.",
            show_default=False,
        ),
    ] = "",
    static_membership: Annotated[
        bool,
        typer.Option(
            "--static-membership",
            help="On a stop, keep the partitions for the next start with the same --owner-id.",
        ),
    ] = False,
    start: Annotated[
        str,
        typer.Option(
            metavar="POSITION",
            help="Where to start in a partition without a checkpoint: earliest, latest, a time "
            "(2026-01-31T08:00:00Z) or a sequence number.",
        ),
    ] = "earliest",
    strategy: Annotated[
        Strategy,
        typer.Option(
            help="How partitions change owners. cooperative: a live owner hands surplus partitions "
            "over. greedy: one surplus partition is stolen in each cycle. balanced: at most one "
            "claim or steal in each cycle."
        ),
    ] = Strategy.COOPERATIVE,
    interval: Annotated[
        str,
        typer.Option(metavar="DURATION", help="The time between two polls of the group's records."),
    ] = "10s",
    expiration: options.Expiration = "60s",
    lease_mode: Annotated[
        Mode,
        typer.Option(
            help="What a process renews: the ownership record of each partition, or one session "
            "lease for all of them. Must be the same for all processors of a group."
        ),
    ] = Mode.PARTITION,
    shutdown_timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="The longest time that a stop may take.")
    ] = "30s",
    checkpoint_events: Annotated[
        int, typer.Option(metavar="N", help="Write a checkpoint after this number of events.")
    ] = 1000,
    checkpoint_interval: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="Write a checkpoint after this time, and on every close."
        ),
    ] = "5s",
    key_concurrency: delivery.KeyConcurrency = 1,
    key_property: delivery.KeyProperty = "",
    attempts: delivery.Attempts = None,
    deliveries: delivery.Deliveries = None,
    give_up: delivery.GiveUpOption = None,
    dead_letters: delivery.DeadLetters = "",
    stall_timeout: delivery.StallTimeout = "",
    rate: delivery.Rate = None,
    partition_rate: delivery.PartitionRate = None,
    log_format: Annotated[
        LogFormat,
        typer.Option(help="The format of log lines. auto: text on a terminal, JSON otherwise."),
    ] = LogFormat.AUTO,
    log_level: Annotated[
        LogLevel, typer.Option(help="The lowest level that is logged to standard error.")
    ] = LogLevel.INFO,
    stop_at_eof: Annotated[
        bool,
        typer.Option(
            "--stop-at-eof",
            help="Stop when standard input ends, too: for programs that start this one.",
        ),
    ] = False,
) -> int:
    """Run your handler on this process's share of an event hub's partitions.

    Start any number of processes, on any machines: those with the same event hub, consumer group
    and store share the partitions. SIGTERM or Ctrl+C stops a process gracefully: it finishes the
    calls under way, writes checkpoints and hands its partitions over. A second signal ends it at
    once.

    Give secrets in the environment: EVENTPROC_CONNECTION_STRING for Event Hubs,
    EVENTPROC_STORAGE_CONNECTION_STRING for --store blob:CONTAINER.

    Exit codes: 0 stopped gracefully, 1 failed, or stopped without storing all progress, 2 an
    option is wrong, 3 the store or the hub did not answer at the start.
    """
    handler_class = load_handler(handler)
    pause = parse_duration("--interval", interval)
    config = EventProcessorConfig(
        load_balancing_strategy=LoadBalancingStrategy(strategy.value),
        load_balancing_interval=pause,
        rebalance_interval=min(pause, REBALANCE_INTERVAL),
        ownership_expiration=parse_duration("--expiration", expiration),
        lease_mode=LeaseMode(lease_mode.value),
        deployment_id=deployment_id,
        static_membership=static_membership,
        shutdown_timeout=parse_duration("--shutdown-timeout", shutdown_timeout),
        initial_position=parse_position("--start", start),
        checkpoint_policy=CheckpointPolicy(
            max_events=checkpoint_events,
            interval=parse_duration("--checkpoint-interval", checkpoint_interval),
        ),
        key_concurrency=key_concurrency,
        key_selector=delivery.key_selector(key_property, key_concurrency),
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
    raise_soft_limit()
    if stop_at_eof:
        stop_at_end_of_input()
    processor.run()
    abandoned = processor.statistics().abandoned
    if abandoned:
        print_error(
            "stopped, and the last checkpoint could not be stored for partition "
            f"{', '.join(abandoned)}: events handled since the checkpoint before will be delivered "
            "again"
        )
        return FAILED
    return OK
