"""Key lanes of blocking handlers: one thread for each lane. In real time, hence short."""

import threading
import time
from collections import Counter
from datetime import timedelta

import pytest

from eventproc import BlockingPartitionHandler
from tests.scenarios.group_setup import Setup, until
from tests.scenarios.test_key_concurrency import publish
from tests.unit.eventproc._delivery.test_handler_threads import SHORT


class BlockingByKey(BlockingPartitionHandler):
    """Sleeps in its threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.busy: Counter[str | None] = Counter()
        self.most = 0
        self.overlaps = 0
        self.handled: list[tuple[str | None, int]] = []

    def process_event(self, context, event):
        """Sleep with a key."""
        key = event.partition_key
        with self.lock:
            self.overlaps += self.busy[key]
            self.busy[key] += 1
            self.most = max(self.most, self.busy.total())
        time.sleep(0.002)
        with self.lock:
            self.busy[key] -= 1
            self.handled.append((key, event.sequence_number))


@pytest.mark.real_time
async def test_a_blocking_handler_has_a_thread_for_each_lane():
    """Keys are handled concurrently, each in order, and checkpointed together."""
    setup = Setup()
    publish(setup, "abcd" * 25)
    handler = BlockingByKey()
    async with setup.processor(lambda: handler, key_concurrency=4, **SHORT):
        await until(lambda: len(handler.handled) == 100)

    assert setup.checkpointed() == 99
    assert handler.overlaps == 0
    assert handler.most > 1
    for key in "abcd":
        numbers = [number for k, number in handler.handled if k == key]
        assert numbers == sorted(numbers)
        assert len(numbers) == 25


@pytest.mark.real_time
async def test_blocked_threads_of_all_lanes_do_not_hold_up_stop():
    """``stop`` keeps ``shutdown_timeout``."""
    called, release = threading.Semaphore(0), threading.Event()

    class Stuck(BlockingPartitionHandler):
        def process_events(self, context, events):
            called.release()
            release.wait(60)

    setup = Setup()
    publish(setup, "abc")
    processor = setup.processor(
        Stuck, key_concurrency=3, **{**SHORT, "shutdown_timeout": timedelta(seconds=0.5)}
    )
    await processor.start()
    for _ in "abc":
        await until(lambda: called.acquire(blocking=False))
    begun_s = time.monotonic()
    await processor.stop()

    release.set()

    assert (time.monotonic() - begun_s) < 15
