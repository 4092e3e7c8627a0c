"""The service's rules of epochs: which receivers may read a partition in a consumer group. Pure.

Rule 1: a receiver with an epoch is exclusive: it displaces all receivers with the same or a lower
epoch and all without one. The Azure SDKs' processors all use epoch 0, so the newest one reads.
Rule 2: a receiver with a lower epoch, or without one, is refused while one with an epoch reads.
Rule 3: without epochs, five receivers may read at a time.
"""

from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

from eventproc.emulator.amqp.refusal import epoch_missing, epoch_too_low, too_many_receivers

RECEIVERS_MAX: Final = 5
"""The service's limit: https://learn.microsoft.com/azure/event-hubs/event-hubs-quotas"""


class Receiver(Protocol):
    """What the rules need to know of a receiver."""

    @property
    def epoch(self) -> int | None:
        """Its owner level, if it has one."""

    @property
    def receiver_name(self) -> str:
        """Its name in the service's messages."""


ReceiverT = TypeVar("ReceiverT", bound=Receiver)


def displaced_by(newcomer: Receiver, present: Sequence[ReceiverT]) -> list[ReceiverT]:
    """Return the connected receivers that ``newcomer`` displaces.

    Raises:
        RefusedError: The newcomer may not connect.
    """
    epochs = [(other.epoch, other) for other in present if other.epoch is not None]
    if newcomer.epoch is None:
        if epochs:
            raise epoch_missing(epochs[0][0])
        if len(present) >= RECEIVERS_MAX:
            raise too_many_receivers(RECEIVERS_MAX, [other.receiver_name for other in present])
        return []
    for epoch, other in epochs:
        if epoch > newcomer.epoch:
            raise epoch_too_low(newcomer.receiver_name, newcomer.epoch, other.receiver_name, epoch)
    return list(present)
