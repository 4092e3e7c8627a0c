"""A fake of the consumer that the reading thread uses."""

from collections import deque

from eventproc.errors import SourceUnavailableError
from eventproc.sources.kafka._errors import ClientError
from eventproc.sources.kafka._offsets import Bounds
from tests.unit.eventproc.sources.kafka.messages import FakeMessage

CHUNK = 10
"""Messages of a partition in one read."""


class FakeConsumer:
    """Partitions of *count* messages. A pause discards fetched messages, as in the client.

    It belongs to the reading thread, except for what a test puts into it.
    """

    def __init__(self, count=0):
        self.count = count
        self.marks = 0
        """Offsets after the last message that have no message: marks of transactions."""
        self.position = {}
        self.paused = set()
        self.put: deque[FakeMessage] = deque()
        self.errors: deque[ClientError] = deque()
        self.calls = []
        self.waits = []
        """How long each read was to wait."""
        self.is_broken = False
        self.is_answered = True

    def partition_count(self, timeout_s):
        self.calls.append(("ask",))
        if not self.is_answered:
            raise SourceUnavailableError("no broker")
        return 2

    def read(self, wait_s):
        self.waits.append(wait_s)
        if self.is_broken:
            raise ValueError("an unexpected error")
        messages = [self.put.popleft() for _ in range(len(self.put))]
        for partition, position in self.position.items():
            if partition not in self.paused:
                end = max(position, min(self.count, position + CHUNK))
                messages += [FakeMessage(n, partition=partition) for n in range(position, end)]
                self.position[partition] = end
        return messages

    def client_errors(self):
        return [self.errors.popleft() for _ in range(len(self.errors))]

    def assign(self, partition, offset, leader_epoch=None):
        self.calls.append(("assign", partition, offset))
        self.position[partition] = offset

    def unassign(self, partition):
        self.calls.append(("unassign", partition))
        del self.position[partition]

    def pause(self, partition):
        self.paused.add(partition)

    def resume(self, partition):
        self.paused.discard(partition)

    def bounds(self, partition, timeout_s):
        return Bounds(0, self.count)

    def high(self, partition):
        assert partition in self.position, "it is not assigned"
        return self.count + self.marks

    def close(self):
        self.calls.append(("close",))
