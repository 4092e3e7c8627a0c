"""``stop`` while ``start`` is under way: the start ends, and leaves nothing open or stored."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import ConfigurationError, EventProcessor, EventProcessorConfig
from eventproc.errors import StoreUnavailableError
from eventproc.sources.memory import MemoryEventSource
from tests.scenarios.group_setup import Noting, Setup, seconds


class SlowStore(MemoryCheckpointStore):
    """Lists checkpoints, which a start reads last, and deletes member records after a time."""

    list_s = 3600.0
    withdraw_s = 0.0
    is_away = False
    open_count = 0

    async def open(self):
        """Count what is open."""
        await super().open()
        self.open_count += 1

    async def close(self):
        """Count what is open."""
        await super().close()
        self.open_count -= 1

    async def list_checkpoints(self, group):
        """Answer late, or with an error."""
        if self.is_away:
            raise StoreUnavailableError("no answer")
        await seconds(self.list_s)
        return await super().list_checkpoints(group)

    async def withdraw_member(self, group, member):
        """Answer late."""
        await seconds(self.withdraw_s)
        return await super().withdraw_member(group, member)


class Starting:
    """A processor whose start takes long."""

    def __init__(self, source: MemoryEventSource | None = None) -> None:
        self.setup = Setup()
        self.store = SlowStore(self.setup.account)
        self.processor = EventProcessor(
            source=source or self.setup.make_source(),
            store=self.store,
            handler=lambda: Noting(self.setup),
            owner_id="a",
            config=EventProcessorConfig(uses_store_thread=False),
        )

    def members(self) -> set[str]:
        """The owner ids that have a member record."""
        return set(self.setup.account.records(self.setup.group).member_by_owner)


async def test_a_stop_ends_a_start_that_is_under_way_and_leaves_nothing():
    """The start returns without an error; the member record is deleted, and the store closed."""
    fixture = Starting()
    starting = asyncio.create_task(fixture.processor.start())
    await seconds(5)
    before = fixture.members(), fixture.store.open_count
    async with asyncio.timeout(1):
        await fixture.processor.stop()
        await starting
        await fixture.processor.finished()

    assert (before, fixture.members(), fixture.store.open_count) == (({"a"}, 1), set(), 0)


async def test_serve_returns_if_its_start_is_stopped():
    """As it does for a stop that comes later."""
    fixture = Starting()
    serving = asyncio.create_task(fixture.processor.serve())
    await seconds(5)
    await fixture.processor.stop()
    async with asyncio.timeout(1):
        await serving

    assert fixture.members() == set()


async def test_a_processor_can_be_started_again_after_its_start_was_stopped():
    """And then it serves."""
    fixture = Starting()
    starting = asyncio.create_task(fixture.processor.start())
    await seconds(5)
    with pytest.raises(ConfigurationError, match="running already"):
        await fixture.processor.start()
    async with asyncio.timeout(1):
        await asyncio.gather(fixture.processor.stop(), fixture.processor.stop(), starting)
    fixture.store.list_s = 0
    async with fixture.processor:
        await seconds(30)
        owners = fixture.setup.owners()

    assert owners == {"0": "a"}


class SuppressesCancellation(MemoryEventSource):
    """Awaits other code that returns its result when the call is cancelled, as Azure's may."""

    async def partition_ids(self) -> Sequence[str]:
        """Return the ids after ten seconds, or as soon as the call is cancelled."""
        found = await super().partition_ids()
        with suppress(asyncio.CancelledError):
            await seconds(10)
        return found


async def test_a_start_that_suppresses_the_cancellation_is_stopped_when_it_is_done():
    """The processor serves for a moment, and then stops as always."""
    setup = Setup()
    processor = EventProcessor(
        source=SuppressesCancellation(setup.hub),
        store=MemoryCheckpointStore(setup.account),
        handler=lambda: Noting(setup),
        config=EventProcessorConfig(uses_store_thread=False),
    )
    serving = asyncio.create_task(processor.serve())
    await seconds(5)
    await processor.stop()
    await asyncio.wait([serving], timeout=1)
    is_done, done_s = serving.done(), setup.now_s
    await seconds(10)
    await processor.stop()

    assert is_done
    assert done_s < 10
    assert not setup.account.records(setup.group).member_by_owner


async def test_a_stop_lets_a_start_that_failed_clean_up():
    """The start raises its error, as it would without the stop, after everything was closed."""
    fixture = Starting()
    fixture.store.is_away, fixture.store.withdraw_s = True, 2.0
    starting = asyncio.create_task(fixture.processor.start())
    await seconds(1)
    await fixture.processor.stop()
    with pytest.raises(StoreUnavailableError):
        await starting

    assert (fixture.members(), fixture.store.open_count) == (set(), 0)


async def test_a_start_that_is_cancelled_and_stopped_raises_the_cancellation():
    """It is the caller's."""
    fixture = Starting()
    starting = asyncio.create_task(fixture.processor.start())
    await seconds(5)
    starting.cancel()
    await fixture.processor.stop()
    with pytest.raises(asyncio.CancelledError):
        await starting

    assert (fixture.members(), fixture.store.open_count) == (set(), 0)
