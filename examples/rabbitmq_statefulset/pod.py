"""A pod: the handler of its orders, and the roster that says which pods there should be."""

import os
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from eventproc import BlockingPartitionHandler, PartitionContext, ReceivedEvent
from eventproc.ports import Roster

REPLICAS = "replicas"
HANDLED = "handled"
"""Files in the folder that the environment names."""

ORDERS_PER_SECOND = 4000
"""What a handler does with the orders of one queue."""


class Orders(BlockingPartitionHandler):
    """Writes the orders that it has handled to a file that all pods share."""

    def process_events(self, context: PartitionContext, events: Sequence[ReceivedEvent]) -> None:
        """Handle the next orders of one queue."""
        time.sleep(len(events) / ORDERS_PER_SECOND)
        process = f"{context.owner_id}.{os.getpid()}"
        lines = [f"{process} {event.partition_key} {event.body.decode()}\n" for event in events]
        # One write: the lines stay together, after those that were written before.
        with Path(os.environ["DEMO_FOLDER"], HANDLED).open("ab", buffering=0) as file:
            file.write("".join(lines).encode())


class Replicas(Roster):
    """Reads the number of pods from a file, as ``--roster statefulset`` reads it from Kubernetes.

    A roster of your own can look like this.
    """

    own_id = os.environ.get("POD_NAME")
    interval = timedelta(seconds=1)
    patience = timedelta(seconds=30)

    def __init__(self) -> None:
        self._file = Path(os.environ["DEMO_FOLDER"], REPLICAS)

    async def owner_ids(self) -> frozenset[str]:
        """Return the names of the pods, those that do not run yet included."""
        replicas = int(self._file.read_text("ascii"))
        return frozenset(f"consumer-{number}" for number in range(replicas))
