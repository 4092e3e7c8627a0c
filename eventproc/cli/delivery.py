"""What ``run`` may be told about delivery: lanes, what becomes of bad events, stalls, rates."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer

from eventproc.config import FailureAction, FailurePolicy, partition_key_of
from eventproc.errors import ConfigurationError
from eventproc.models import ReceivedEvent


class GiveUp(StrEnum):
    """What becomes of an event that is given up."""

    STOP = "stop"
    SKIP = "skip"
    DEAD_LETTER = "dead-letter"


KeyLanes = Annotated[
    int,
    typer.Option(
        "--key-lanes",
        metavar="N",
        help="Handle so many keys of one partition at once, each in order. Without state then.",
    ),
]
KeyProperty = Annotated[
    str,
    typer.Option(
        "--key-property",
        metavar="NAME",
        help="With --key-lanes: the event property to go by, in place of the partition key.",
        show_default=False,
    ),
]
Attempts = Annotated[
    int | None,
    typer.Option(
        "--attempts",
        metavar="N",
        help="Give up an event that failed so often. For ever tried if not given.",
        show_default=False,
    ),
]
Deliveries = Annotated[
    int | None,
    typer.Option(
        "--deliveries",
        metavar="N",
        help="Give up an event of which so many processes died (3 or more). Not counted if not "
        "given.",
        show_default=False,
    ),
]
GiveUpOption = Annotated[
    GiveUp | None,
    typer.Option(
        "--give-up",
        help="What becomes of an event that is given up: stop its partition, skip it, or store it "
        "in --dead-letters. By default the last if that is given, else the first.",
        show_default=False,
    ),
]
DeadLetters = Annotated[
    str,
    typer.Option(
        "--dead-letters",
        metavar="SINK",
        help="Where given up events are stored: blob:CONTAINER, or eventhub:NAME in the same "
        "namespace.",
        show_default=False,
    ),
]
StallTimeout = Annotated[
    str,
    typer.Option(
        "--stall-timeout",
        metavar="DURATION",
        help="Give up a partition that has events and gets nothing done for this long. Waited for "
        "ever if not given.",
        show_default=False,
    ),
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--rate",
        metavar="N",
        help="Most events a second, all partitions together.",
        show_default=False,
    ),
]
PartitionRate = Annotated[
    float | None,
    typer.Option(
        "--partition-rate",
        metavar="N",
        help="Most events a second of one partition.",
        show_default=False,
    ),
]


def failure_policy(
    attempts: int | None, deliveries: int | None, give_up: GiveUp | None, dead_letters: str
) -> FailurePolicy:
    """Put the policy together.

    Raises:
        ConfigurationError: The options contradict each other, or lack one.
    """
    given = GiveUp.DEAD_LETTER if dead_letters else GiveUp.STOP
    then = give_up or given
    if then is GiveUp.DEAD_LETTER and not dead_letters:
        raise ConfigurationError(
            "--give-up dead-letter: where to? Give --dead-letters blob:CONTAINER or eventhub:NAME"
        )
    if then is not GiveUp.DEAD_LETTER and dead_letters:
        raise ConfigurationError(
            f"--give-up {then} stores no dead letters: leave --dead-letters out, or say "
            "--give-up dead-letter"
        )
    if (give_up or dead_letters) and attempts is None and deliveries is None:
        raise ConfigurationError(
            f"no event is ever given up: say when, by --attempts or --deliveries, or leave out "
            f"{'--give-up' if give_up else '--dead-letters'}"
        )
    return FailurePolicy(
        attempts_max=attempts,
        deliveries_max=deliveries,
        then=FailureAction(then.value.replace("-", "_")),
    )


def key_of(key_property: str, key_lanes: int) -> Callable[[ReceivedEvent], str | bytes | None]:
    """Return what tells the key of an event.

    Raises:
        ConfigurationError: The property would make no difference.
    """
    if not key_property:
        return partition_key_of
    if key_lanes <= 1:
        raise ConfigurationError(
            f"--key-property {key_property} makes no difference without --key-lanes: one call at a "
            "time keeps everything in order"
        )
    return PropertyKey(key_property)


class PropertyKey:
    """Keeps events in order that have the same value of one property.

    Events without it are one key, as events without a partition key are.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, event: ReceivedEvent) -> str | bytes | None:
        """Return the key of an event."""
        value = event.properties.get(self._name)
        return value if value is None or isinstance(value, (str, bytes)) else repr(value)
