"""A store or a source that does not close does not keep a processor from stopping."""

import asyncio
import select
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import ConfigurationError, EventProcessor, EventProcessorConfig
from eventproc._runtime.run import CLOSE_GRACE_S
from eventproc.ports import HealthReporter
from tests.scenarios.group_setup import Noting, Setup, seconds, source_of

SHUTDOWN = timedelta(seconds=20)


async def never():
    """Wait for ever, as a client does for an answer that does not come."""
    await asyncio.Event().wait()


def left_open(caplog):
    """Return the parts that were not closed in time."""
    return [
        vars(record)["part"]
        for record in caplog.records
        if vars(record).get("event") == "close_timed_out"
    ]


@pytest.mark.parametrize("part", ["store", "source"])
async def test_a_stop_ends_although_a_part_does_not_close(caplog, part):
    """After the rest of ``shutdown_timeout`` and a grace period. It is logged."""
    setup = Setup()
    processor = setup.processor(shutdown_timeout=SHUTDOWN)
    target = setup.store_by_owner["a"] if part == "store" else source_of(processor)
    target.close = never  # type: ignore[method-assign]
    loop = asyncio.get_running_loop()
    async with processor:
        await seconds(30)
        began_s = loop.time()

    assert (loop.time() - began_s) <= SHUTDOWN.total_seconds() + CLOSE_GRACE_S + 0.5
    assert setup.owners() == {"0": None}
    assert left_open(caplog) == [part]


async def test_a_stop_ends_although_the_list_of_partitions_does_not(caplog):
    """The source's or the user's code asks for it, and may not end when it is cancelled."""
    setup = Setup()
    processor = setup.processor(shutdown_timeout=SHUTDOWN)
    asked = asyncio.Event()

    async def uncancellable():
        asked.set()
        for _ in range(10):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(100)

    async with processor:
        source_of(processor).partition_ids = uncancellable
        await asked.wait()
        began_s = asyncio.get_running_loop().time()

    assert asyncio.get_running_loop().time() - began_s <= SHUTDOWN.total_seconds() + CLOSE_GRACE_S
    assert setup.owners() == {"0": None}
    assert left_open(caplog) == ["names"]


class Unending(HealthReporter):
    """Does not end."""

    async def begin(self, member):
        """Begin."""

    async def end(self, member):
        """Wait for ever."""
        await never()


async def test_a_stop_ends_although_its_health_reporter_does_not(caplog):
    """For example a server in which somebody's callback for metrics blocks."""
    setup = Setup()
    processor = EventProcessor(
        source=setup.make_source(),
        store=MemoryCheckpointStore(),
        handler=lambda: Noting(setup),
        config=EventProcessorConfig(uses_store_thread=False),
        health=Unending(),
    )
    async with processor:
        await seconds(5)
    await processor.start()
    await processor.stop()

    assert left_open(caplog) == 2 * ["health"]


async def test_a_failed_start_ends_although_the_store_does_not_close(caplog):
    """With the error of the start."""
    setup = Setup()
    processor = setup.processor(shutdown_timeout=SHUTDOWN)
    setup.store_by_owner["a"].close = never  # type: ignore[method-assign]

    async def refuse(_):
        raise ConfigurationError("no such group")

    source_of(processor).check_consumer_group = refuse
    with pytest.raises(ConfigurationError, match="no such group"):
        await processor.start()

    assert left_open(caplog) == ["store"]


@pytest.mark.real_time
async def test_stop_leaves_behind_a_thread_that_the_store_blocks(caplog):
    """It is a daemon, so it does not keep the process alive, and it ends when the store returns."""
    before = set(threading.enumerate())
    go_on = threading.Event()
    setup = Setup()
    setup.account.now = lambda: datetime.now(UTC)
    processor = setup.processor(uses_store_thread=True, shutdown_timeout=timedelta(seconds=0.5))

    async def block():
        while not go_on.is_set():
            select.select([], [], [], 0.01)  # Blocks, and is not refused in an event loop.

    setup.store_by_owner["a"].close = block  # type: ignore[method-assign]
    try:
        async with asyncio.timeout(20):
            await processor.start()
            await processor.stop()
    finally:
        go_on.set()

    assert left_open(caplog) == ["store", "store_thread"]
    for thread in set(threading.enumerate()) - before:
        await asyncio.to_thread(thread.join, 5)
        assert not thread.is_alive()
