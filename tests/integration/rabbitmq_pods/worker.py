"""A pod: a process that serves partition queues and writes a journal.

Arguments: address of the broker, prefix and number of the queues, the store (an SQLite file), owner
id, path of the journal, settings as JSON. SIGTERM stops it in order; the end of its input kills it.

A line of the journal is written before the handler goes on, so it survives a SIGKILL: what happened
(``enter`` and ``leave`` of a call, ``handled``), the partition, the time by CLOCK_MONOTONIC, which
all processes share, and for a message its key, number, and how often the broker had sent it before.
"""

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from random import Random

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import (
    Backoff,
    CheckpointPolicy,
    EventProcessor,
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
)
from eventproc.sources.rabbitmq import QueueOptions, RabbitDeadLetterSink, RabbitQueues
from eventproc.sources.rabbitmq._event import DELIVERIES

URL, PREFIX, COUNT, STORE, OWNER_ID, JOURNAL, GIVEN = sys.argv[1:]
SETTINGS = json.loads(GIVEN)
EXPIRATION_S = SETTINGS.get("expiration_s", 4)
"""The heartbeat follows from it: a broker or a pod that gets no processor for longer than two or
three of them loses its connections, which is no planned change."""

LETTERS = SETTINGS.get("letters")
"""The queue for dead letters: then a message whose body is ``poison`` kills the process."""

_journal = os.open(JOURNAL, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
_random = Random(OWNER_ID)


def record(what: str, *details: object) -> None:
    """Write a line."""
    os.write(_journal, " ".join(map(str, (what, *details))).encode() + b"\n")


class Orders(PartitionHandler):
    """Handles orders, with a moment of work between some of them."""

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Record when the call begins and ends, and each order."""
        record("enter", context.partition_id, time.monotonic_ns())
        try:
            for event in events:
                if LETTERS and event.body == b"poison":
                    os.kill(os.getpid(), signal.SIGKILL)
                if _random.random() < 0.05:
                    await asyncio.sleep(0.001)
                again = event.system_properties.get(DELIVERIES, 0)
                number = event.body.decode()
                now = time.monotonic_ns()
                record("handled", context.partition_id, now, event.partition_key, number, again)
        finally:
            record("leave", context.partition_id, time.monotonic_ns())


def end_with_input() -> None:
    """End the process when its parent has ended."""
    sys.stdin.read()
    os._exit(3)


async def main() -> None:
    """Serve until SIGTERM."""
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    threading.Thread(target=end_with_input, daemon=True).start()
    processor = EventProcessor(
        source=RabbitQueues(
            URL,
            prefix=PREFIX,
            count=int(COUNT),
            options=QueueOptions(
                prefetch=200, connect_timeout=timedelta(seconds=max(5, EXPIRATION_S))
            ),
        ),
        store=SqliteCheckpointStore(STORE),
        handler=Orders,
        owner_id=OWNER_ID,
        dead_letters=RabbitDeadLetterSink(URL, routing_key=LETTERS) if LETTERS else None,
        config=EventProcessorConfig(
            ownership_expiration=timedelta(seconds=EXPIRATION_S),
            load_balancing_interval=timedelta(seconds=0.5),
            rebalance_interval=timedelta(seconds=0.2),
            shutdown_timeout=timedelta(seconds=15),
            receiver_backoff=Backoff(initial=timedelta(seconds=0.2), maximum=timedelta(seconds=1)),
            checkpoint_policy=CheckpointPolicy(max_events=50, interval=timedelta(seconds=1)),
            batch_size_max=20,
            key_concurrency=SETTINGS.get("lanes", 1),
            failure_policy=FailurePolicy(deliveries_max=3, action=FailureAction.DEAD_LETTER)
            if LETTERS
            else FailurePolicy(),
        ),
    )
    async with processor:
        print("ready", flush=True)
        await stopping.wait()


asyncio.run(main())
