"""Real processes that are asked to stop while their handler does not return."""

import asyncio
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import EventPosition, EventProcessor, EventProcessorConfig, PartitionHandler
from eventproc.sources.memory import MemoryEventSource, MemoryHub

STUCK = Path(__file__).with_name("stuck.py")
WAYS = {
    "blocked": (signal.SIGINT, 1),
    "deaf": (signal.SIGTERM, 1),
    "logging": (signal.SIGTERM, 1),
    "thread": (signal.SIGINT, 1),
    "waiting": (signal.SIGTERM, 0),
}
"""Ways to hang, with signal and exit code: only a handler that awaits can be cancelled."""

TIMEOUT_S = 120


def started(way: str) -> "subprocess.Popen[bytes]":
    """Return a process whose handler was called, and does not return."""
    process = subprocess.Popen([sys.executable, STUCK, way], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"called\n"
    return process


def test_a_stop_ends_within_its_timeout_however_the_handler_hangs():
    """The exit code is 0 only if the handler could be cancelled."""
    processes = {way: started(way) for way in WAYS}
    for way, process in processes.items():
        process.send_signal(WAYS[way][0])
    output = {way: process.communicate(timeout=TIMEOUT_S)[0] for way, process in processes.items()}

    assert {way: process.returncode for way, process in processes.items()} == {
        way: code for way, (_, code) in WAYS.items()
    }
    assert output == {way: b"" if code else b"returned\n" for way, (_, code) in WAYS.items()}


def test_a_second_signal_kills_the_process_at_once():
    """The signal's default action ends a process whose handler blocks the event loop."""
    with started("blocked") as process:
        while process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.2)

    assert process.returncode == -signal.SIGTERM


async def test_a_stop_does_not_wait_for_a_batch_whose_events_block_the_event_loop():
    """Between two events the loop gets a turn, so the stop is noticed and positions are stored."""
    hub, account, handled = MemoryHub(2), MemoryAccount(), []
    for number in range(100):
        hub.publish(b"", partition_id=str(number % 2))
    has_begun = asyncio.Event()

    class Blocking(PartitionHandler):
        async def process_event(self, context, event):
            has_begun.set()
            time.sleep(0.1)  # noqa: ASYNC251 - as a handler with a client that blocks
            handled.append(event.sequence_number)

    processor = EventProcessor(
        source=MemoryEventSource(hub),
        store=MemoryCheckpointStore(account),
        handler=Blocking,
        config=EventProcessorConfig(initial_position=EventPosition.earliest()),
    )
    async with processor:
        await has_begun.wait()
    async with MemoryCheckpointStore(account) as store:
        stored = await store.list_checkpoints(processor.consumer_group)

    assert 0 < len(handled) < 30
    assert sum((found.sequence_number or 0) + 1 for found in stored) == len(handled)
