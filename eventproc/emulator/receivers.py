"""Who may read a partition in a consumer group? The service's rules of epochs. Pure.

Rule 1: a receiver with an epoch is alone: it displaces every other of the same or a lower epoch,
and every one without. The genuine processors all use epoch 0, so for them equal means: take over.
Rule 2: a receiver with a lower epoch, or without one, is refused while one with an epoch reads.
Rule 3: without epochs, five may read at a time.
"""

from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

from eventproc.emulator.refusal import epoch_missing, epoch_too_low, too_many_receivers

RECEIVERS_MAX: Final = 5
"""The service's limit: https://learn.microsoft.com/azure/event-hubs/event-hubs-quotas"""


class Receiver(Protocol):
    """What the rules ask of a receiver."""

    @property
    def epoch(self) -> int | None:
        """Its owner level, if it has one."""

    @property
    def receiver_name(self) -> str:
        """What the service's sentences call it."""


ReceiverT = TypeVar("ReceiverT", bound=Receiver)


def displaced_by(newcomer: Receiver, present: Sequence[ReceiverT]) -> list[ReceiverT]:
    """Which of the receivers present have to go when ``newcomer`` comes.

    Raises:
        RefusedError: The newcomer has to stay out.
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
