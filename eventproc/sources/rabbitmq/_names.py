"""The names of partition queues, and the queue of a key. All functions are pure."""

from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b, md5
from typing import Final

from eventproc.errors import ConfigurationError, SourceRejectedError

NAME_BYTES_MAX: Final = 255
"""The longest name of a queue, by AMQP 0-9-1."""

COUNT_MAX: Final = 10_000


class QueueHash(Enum):
    """How a key is assigned to one of the queues."""

    JUMP = "jump"
    """Jump consistent hash (Lamping and Veach, 2014): when a queue is added, the only keys that
    change their queue are those that go to the new one."""

    MD5_MODULO = "md5-modulo"
    """The first four bytes of the key's MD5, least significant first, modulo the number of queues.
    For publishers in other programs that compute the same hash. With another number of queues
    nearly every key changes its queue."""


@dataclass(frozen=True, slots=True)
class QueueNames:
    """The names of the queues ``PREFIX-P0``, ``PREFIX-P1`` and so on."""

    prefix: str
    count: int

    def __post_init__(self) -> None:
        """Refuse names that the broker would refuse, and too many of them."""
        if not self.prefix or len(self.queue(COUNT_MAX).encode()) > NAME_BYTES_MAX:
            raise ConfigurationError(
                f"prefix is {self.prefix!r}: give a name of 1 to {NAME_BYTES_MAX - 7} bytes"
            )
        if self.prefix.startswith("amq."):
            raise ConfigurationError(
                f"prefix is {self.prefix!r}: RabbitMQ keeps names that begin with 'amq.' for itself"
            )
        if not 1 <= self.count <= COUNT_MAX:
            raise ConfigurationError(f"count is {self.count}: give 1 to {COUNT_MAX} queues")

    def queue(self, number: int) -> str:
        """Return the name of a queue."""
        return f"{self.prefix}-P{number}"

    @property
    def partition_ids(self) -> tuple[str, ...]:
        """The partition ids: the numbers of the queues."""
        return tuple(map(str, range(self.count)))

    def queue_of(self, partition_id: str) -> str:
        """Return the queue of a partition.

        Raises:
            SourceRejectedError: there is no such partition.
        """
        number = int(partition_id) if partition_id.isdecimal() else self.count
        if number >= self.count or str(number) != partition_id:
            raise SourceRejectedError(
                f"there is no partition {partition_id!r}: {self.prefix!r} has {self.count} queues"
            )
        return f"{self.prefix}-P{partition_id}"

    def number_of(self, key: str, how: QueueHash) -> int:
        """Return the number of the queue that has the messages of a key."""
        if how is QueueHash.JUMP:
            digest = blake2b(key.encode(), digest_size=8).digest()
            return _jump(int.from_bytes(digest, "big"), self.count)
        digest = md5(key.encode(), usedforsecurity=False).digest()
        return int.from_bytes(digest[:4], "little") % self.count


def _jump(seed: int, count: int) -> int:
    number, following = -1, 0
    while following < count:
        number = following
        seed = (seed * 2862933555777941757 + 1) % 2**64
        following = int((number + 1) * (2**31 / ((seed >> 33) + 1)))
    return number
