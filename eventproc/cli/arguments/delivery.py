"""The options of ``run`` about delivery: key concurrency, failures, stalls and rates."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer

from eventproc.config import FailureAction, FailurePolicy, partition_key_of
from eventproc.errors import ConfigurationError
from eventproc.models import ReceivedEvent


class GiveUp(StrEnum):
    """The action for an event that is given up."""

    STOP = "stop"
    SKIP = "skip"
    DEAD_LETTER = "dead-letter"


KeyConcurrency = Annotated[
    int,
    typer.Option(
        "--key-concurrency",
        metavar="N",
        help="Handle up to N keys of one partition at once, each key in order. Above 1, the "
        "handler cannot store state.",
    ),
]
KeyProperty = Annotated[
    str,
    typer.Option(
        "--key-property",
        metavar="NAME",
        help="With --key-concurrency: the event property that holds the key. By default the "
        "partition key is used.",
        show_default=False,
    ),
]
Attempts = Annotated[
    int | None,
    typer.Option(
        "--attempts",
        metavar="N",
        help="Give up an event after N failed attempts. By default it is retried for ever.",
        show_default=False,
    ),
]
Deliveries = Annotated[
    int | None,
    typer.Option(
        "--deliveries",
        metavar="N",
        help="Give up an event after N deliveries that killed the process (3 or more). By default "
        "deliveries are not counted.",
        show_default=False,
    ),
]
GiveUpOption = Annotated[
    GiveUp | None,
    typer.Option(
        "--give-up",
        help="What to do with an event that is given up: stop its partition, skip the event, or "
        "store it as a dead letter. By default dead-letter with --dead-letters, otherwise stop.",
        show_default=False,
    ),
]
DeadLetters = Annotated[
    str,
    typer.Option(
        "--dead-letters",
        metavar="SINK",
        help="Where to store events that are given up: blob:CONTAINER, or eventhub:NAME in the "
        "same namespace.",
        show_default=False,
    ),
]
StallTimeout = Annotated[
    str,
    typer.Option(
        "--stall-timeout",
        metavar="DURATION",
        help="Give up a partition that has events but completes none of them for this long. By "
        "default there is no limit.",
        show_default=False,
    ),
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--rate",
        metavar="N",
        help="The most events per second, in all partitions together.",
        show_default=False,
    ),
]
PartitionRate = Annotated[
    float | None,
    typer.Option(
        "--partition-rate",
        metavar="N",
        help="The most events per second in each partition.",
        show_default=False,
    ),
]


def failure_policy(
    attempts: int | None, deliveries: int | None, give_up: GiveUp | None, dead_letters: str
) -> FailurePolicy:
    """Make the failure policy from the options.

    Raises:
        ConfigurationError: Two options contradict each other, or one is missing.
    """
    default = GiveUp.DEAD_LETTER if dead_letters else GiveUp.STOP
    action = give_up or default
    if action is GiveUp.DEAD_LETTER and not dead_letters:
        raise ConfigurationError(
            "--give-up dead-letter needs a place: give --dead-letters blob:CONTAINER or "
            "--dead-letters eventhub:NAME"
        )
    if action is not GiveUp.DEAD_LETTER and dead_letters:
        raise ConfigurationError(
            f"--give-up {action} stores no dead letters: leave --dead-letters out, or give "
            "--give-up dead-letter"
        )
    if (give_up or dead_letters) and attempts is None and deliveries is None:
        raise ConfigurationError(
            "no event would ever be given up: set a limit with --attempts or --deliveries, or "
            f"leave out {'--give-up' if give_up else '--dead-letters'}"
        )
    return FailurePolicy(
        attempts_max=attempts,
        deliveries_max=deliveries,
        action=FailureAction(action.value.replace("-", "_")),
    )


def key_selector(
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
    return PropertyKey(key_property)


class PropertyKey:
    """Returns the value of one property as the key of an event.

    Events without the property share one key, as events without a partition key do.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, event: ReceivedEvent) -> str | bytes | None:
        """Return the key of an event."""
        value = event.properties.get(self._name)
        return value if value is None or isinstance(value, (str, bytes)) else repr(value)
