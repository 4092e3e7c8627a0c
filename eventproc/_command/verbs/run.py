"""``eventproc run``: run the user's handler in a processor, one for each process."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from eventproc._base.threads import exclude_imports_from_collections
from eventproc._command.arguments.address import HubAddress
from eventproc._command.arguments.config_options import PROCESSOR
from eventproc._command.arguments.dead_letters import make_sink
from eventproc._command.arguments.grouped import ConfigOptions
from eventproc._command.arguments.modules import load_handler, make_roster
from eventproc._command.terminal.exits import FAILED, OK, print_error
from eventproc._command.workers.process import ProcessOptions
from eventproc._delivery.checks import may_give_up
from eventproc._delivery.config import (
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
    partition_key_of,
)
from eventproc._delivery.handler import HandlerFactory
from eventproc._runtime.processors import EventProcessor
from eventproc.errors import ConfigurationError
from eventproc.models import ReceivedEvent


class GiveUp(StrEnum):
    """The action for an event that is given up."""

    STOP = "stop"
    SKIP = "skip"
    DEAD_LETTER = "dead-letter"


def run(
    *,
    handler: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:CLASS",
            help="Your handler: orders:OrderHandler is the class OrderHandler in orders.py, in "
            "this folder or in an installed package. A function that makes one will do.",
        ),
    ],
    address: HubAddress,
    create_container: Annotated[
        bool,
        typer.Option(
            "--create-container",
            help="Create the blob container, the Azure table, or the tables in PostgreSQL, if they "
            "do not exist.",
        ),
    ] = False,
    process: ProcessOptions,
    config: Annotated[EventProcessorConfig, ConfigOptions(PROCESSOR)],
    key_property: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="With --key-concurrency: the event property that holds the key. By default the "
            "partition key is used.",
        ),
    ] = "",
    give_up: Annotated[
        GiveUp | None,
        typer.Option(
            help="What to do with an event that is given up: stop its partition, skip the event, "
            "or store it as a dead letter. By default dead-letter with --dead-letters, otherwise "
            "stop.",
        ),
    ] = None,
    dead_letters: Annotated[
        str,
        typer.Option(
            metavar="SINK",
            help="Where to store events that are given up: blob:CONTAINER, eventhub:NAME in the "
            "same namespace, or queue:NAME of the same RabbitMQ broker. `eventproc dead-letters` "
            "shows and replays them.",
        ),
    ] = "",
) -> int:
    """Run your handler on a share of an event hub's partitions: on several cores, with probes.

    Start any number of processes, on any machines: those with the same event hub, consumer group
    and store share the partitions. SIGTERM or Ctrl+C stops a process gracefully: it finishes the
    calls under way, writes checkpoints and hands its partitions over. A second signal ends it at
    once. --workers N starts N processes, for as many cores, which stop together. --http PORT serves
    probes and metrics.

    Give --namespace and --storage-account to use the identity of this process. Or give secrets in
    the environment: EVENTPROC_CONNECTION_STRING for Event Hubs,
    EVENTPROC_STORAGE_CONNECTION_STRING for --store blob:CONTAINER and tables:TABLE; for --store
    postgres:NAME it is the variable NAME.

    Exit codes: 0 stopped gracefully, 1 failed, or stopped without storing all progress, 2 an
    option, the handler or a credential cannot work, 3 the store or the hub did not answer at the
    start.
    """
    code = process.supervise(config)
    if code is not None:
        return code
    handler_class = load_handler(handler)
    source = address.source()
    assert source is not None, "a hub has one"
    processor = EventProcessor(
        source=source,
        store=address.checkpoint_store(creates=create_container),
        handler=handler_class,
        dead_letters=make_sink(dead_letters, address),
        consumer_group=address.consumer_group,
        owner_id=process.owner_id or None,
        roster=make_roster(process.roster),
        health=process.reporter(),
        config=replace(
            config,
            key_selector=_key_selector(key_property, config.key_concurrency),
            failure_policy=_failure_policy(
                config.failure_policy, give_up, dead_letters, handler_class
            ),
        ),
    )
    process.prepare()
    exclude_imports_from_collections()
    processor.run()
    return _exit_code(processor.statistics().abandoned)


def _exit_code(abandoned: Sequence[str]) -> int:
    """Return the exit code of a stop, and name the partitions whose last checkpoint is missing."""
    if abandoned:
        print_error(
            "stopped, and the last checkpoint could not be stored for partition"
            f"{'s' * (len(abandoned) > 1)} {', '.join(abandoned)}: events handled since the "
            "checkpoint before will be delivered again"
        )
        return FAILED
    return OK


def _failure_policy(
    policy: FailurePolicy, give_up: GiveUp | None, dead_letters: str, handler: HandlerFactory
) -> FailurePolicy:
    """Return the policy with the action that the options name.

    Args:
        policy: The limits.
        give_up: The value of ``--give-up``.
        dead_letters: The value of ``--dead-letters``.
        handler: One that decodes gives up bodies that cannot be decoded, without any limit.

    Raises:
        ConfigurationError: Two options contradict each other, or one is missing.
    """
    default = GiveUp.DEAD_LETTER if dead_letters else GiveUp.STOP
    action = give_up or default
    if action is GiveUp.DEAD_LETTER and not dead_letters:
        raise ConfigurationError(
            "--give-up dead-letter needs a place: give --dead-letters blob:CONTAINER, "
            "--dead-letters eventhub:NAME or --dead-letters queue:NAME"
        )
    if action is not GiveUp.DEAD_LETTER and dead_letters:
        raise ConfigurationError(
            f"--give-up {action} stores no dead letters: leave --dead-letters out, or give "
            "--give-up dead-letter"
        )
    if (give_up or dead_letters) and not may_give_up(policy, handler):
        raise ConfigurationError(
            "no event would ever be given up, because the handler has no decoder and there is no "
            "limit: set one with --attempts or --deliveries, or leave out "
            f"{'--give-up' if give_up else '--dead-letters'}"
        )
    return replace(policy, action=FailureAction(action.value.replace("-", "_")))


def _key_selector(
    key_property: str, key_concurrency: int
) -> Callable[[ReceivedEvent], str | bytes | None]:
    """Return the function that returns the key of an event.

    Raises:
        ConfigurationError: ``key_property`` has no effect with this ``key_concurrency``.
    """
    if not key_property:
        return partition_key_of
    if key_concurrency <= 1:
        raise ConfigurationError(
            f"--key-property {key_property} has no effect without --key-concurrency: with one call "
            "at a time, all events of a partition are handled in order"
        )

    def property_of(event: ReceivedEvent) -> str | bytes | None:
        # Events without the property share one key, as events without a partition key do.
        value = event.properties.get(key_property)
        return value if value is None or isinstance(value, (str, bytes)) else repr(value)

    return property_of
