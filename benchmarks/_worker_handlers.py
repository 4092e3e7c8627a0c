"""Handlers that compute or wait for each event, and report how many they have handled.

``benchmarks/workers.py`` runs them with the command.
"""

import asyncio
import os
import time
from collections import Counter

from eventproc import (
    BlockingPartitionContext,
    BlockingPartitionHandler,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
)

STEPS = 60_000
"""Of a computation in Python, which takes one or two milliseconds."""

WAIT_S = 0.005

_handled: Counter[str] = Counter()


def report(partition_id: str) -> None:
    """Count an event, and print the count of its partition from time to time."""
    _handled[partition_id] += 1
    if _handled[partition_id] % int(os.environ["BENCH_REPORT_EVERY"]) == 0:
        line = f"{os.getpid()} {partition_id} {_handled[partition_id]}\n"
        os.write(1, line.encode())


def compute() -> None:
    """Keep one core busy."""
    total = 0
    for number in range(STEPS):
        total += number * number


class Computing(PartitionHandler):
    """Computes, on the event loop."""

    async def process_event(self, context: PartitionContext, _event: ReceivedEvent) -> None:
        """Compute."""
        compute()
        report(context.partition_id)


class ComputingInThreads(BlockingPartitionHandler):
    """Computes, in a thread for each partition."""

    def process_event(self, context: BlockingPartitionContext, _event: ReceivedEvent) -> None:
        """Compute."""
        compute()
        report(context.partition_id)


class Waiting(PartitionHandler):
    """Waits, as for the answer of a service."""

    async def process_event(self, context: PartitionContext, _event: ReceivedEvent) -> None:
        """Wait."""
        await asyncio.sleep(WAIT_S)
        report(context.partition_id)


class WaitingInThreads(BlockingPartitionHandler):
    """Waits, with a client that blocks, in a thread for each partition."""

    def process_event(self, context: BlockingPartitionContext, _event: ReceivedEvent) -> None:
        """Wait."""
        time.sleep(WAIT_S)
        report(context.partition_id)
