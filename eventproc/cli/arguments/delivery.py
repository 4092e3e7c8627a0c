"""What ``run`` makes of its options about delivery: the key of an event, the failure policy."""

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum

from eventproc.config import FailureAction, FailurePolicy, partition_key_of
from eventproc.errors import ConfigurationError
from eventproc.models import ReceivedEvent


class GiveUp(StrEnum):
    """The action for an event that is given up."""

    STOP = "stop"
    SKIP = "skip"
    DEAD_LETTER = "dead-letter"


def failure_policy(
    policy: FailurePolicy, give_up: GiveUp | None, dead_letters: str, *, decodes: bool = False
) -> FailurePolicy:
    """Return the policy with the action that the options name.

    Args:
        policy: The limits that are given.
        give_up: The action, if it is given.
        dead_letters: The sink, if it is given.
        decodes: Whether the handler has a decoder: a body that it cannot decode is given up
            without any limit.

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
    has_limit = (policy.attempts_max, policy.deliveries_max) != (None, None)
    if (give_up or dead_letters) and not (has_limit or decodes):
        raise ConfigurationError(
            "no event would ever be given up: set a limit with --attempts or --deliveries, or "
            f"leave out {'--give-up' if give_up else '--dead-letters'}"
        )
    return replace(policy, action=FailureAction(action.value.replace("-", "_")))


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

    def property_of(event: ReceivedEvent) -> str | bytes | None:
        # Events without the property share one key, as events without a partition key do.
        value = event.properties.get(key_property)
        return value if value is None or isinstance(value, (str, bytes)) else repr(value)

    return property_of
