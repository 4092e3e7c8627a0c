"""What ``run`` makes of its options about delivery: the key of an event, the failure policy."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum

from eventproc._delivery.config import FailureAction, FailurePolicy, partition_key_of
from eventproc._delivery.handler import HandlerFactory
from eventproc.errors import ConfigurationError
from eventproc.models import ReceivedEvent


class GiveUp(StrEnum):
    """The action for an event that is given up."""

    STOP = "stop"
    SKIP = "skip"
    DEAD_LETTER = "dead-letter"


def failure_policy(
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
    has_limit = (policy.attempts_max, policy.deliveries_max) != (None, None)
    if (give_up or dead_letters) and not has_limit and not _may_decode(handler):
        raise ConfigurationError(
            "no event would ever be given up, because the handler has no decoder and there is no "
            "limit: set one with --attempts or --deliveries, or leave out "
            f"{'--give-up' if give_up else '--dead-letters'}"
        )
    return replace(policy, action=FailureAction(action.value.replace("-", "_")))


def _may_decode(handler: HandlerFactory) -> bool:
    """Whether handlers have a decoder, or may have: what a function returns is not known yet."""
    if not isinstance(handler, type):
        return True
    # The attribute of a class may be a property, which only a handler can answer.
    return inspect.getattr_static(handler, "decode", None) is not None


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
