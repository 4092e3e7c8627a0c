"""Unexpected exceptions of a user's store end no processor, and are logged."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import CheckpointPolicy, ConsumerGroup, StoreError, StoreUnavailableError
from eventproc._base.logs import get_logger
from eventproc._runtime.guarded_store import GuardedStore
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup, seconds
from tests.scenarios.test_blocked_partitions import lines_of


async def _raise_foreign() -> None:
    raise ConnectionResetError("a client library's own exception")


async def _end_as_if_cancelled() -> None:
    task = asyncio.ensure_future(asyncio.sleep(100))
    await asyncio.sleep(0)
    task.cancel()
    await task


READS = ("list_ownership", "list_members", "read_checkpoint")
WRITES = ("claim_ownership", "announce_member", "update_checkpoint", "withdraw_member")


@pytest.mark.parametrize("fail", [_raise_foreign, _end_as_if_cancelled])
@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_an_unexpected_exception_of_a_store_does_not_end_the_processor(
    name: str, fail: Callable[[], Awaitable[None]], caplog: Any
) -> None:
    """In any method, while running or stopping. It is logged once, and every event is handled."""

    async def scenario():
        setup = Setup(2)
        processor = setup.processor(
            checkpoint_policy=CheckpointPolicy(max_events=1),
            load_balancing_interval=timedelta(seconds=5),
        )
        store: Any = setup.store_by_owner["a"]
        works = getattr(store, name)

        async def failing(*_):
            await fail()

        for round_number in range(2):
            async with processor:
                setattr(store, name, works)
                await seconds(10)
                setattr(store, name, failing)
                setup.publish(2)
                await seconds(30)
                if round_number == 0:
                    setattr(store, name, works)
                    await seconds(120)
                    assert processor.statistics().owned == ("0", "1")
                    assert setup.checkpointed() == 1
            setattr(store, name, works)
        async with processor:
            await seconds(120)
            return setup.checkpointed()

    caplog.set_level(logging.INFO, "eventproc")

    assert run_virtual(scenario()) == 3
    assert not [
        r for r in caplog.records if getattr(r, "event", "") in {"processor_failed", "pump_failed"}
    ]
    logged = [r for r in caplog.records if getattr(r, "event", "") == "store_call_failed"]
    assert {(r.levelname, r.call) for r in logged} <= {("ERROR", name)}
    assert len(logged) <= 2


async def test_an_unexpected_exception_of_a_store_at_the_start_names_the_method():
    """The error has the class and the method, and the cause is chained."""
    setup = Setup()
    processor = setup.processor()
    store: Any = setup.store_by_owner["a"]

    async def open_store():
        await _raise_foreign()

    store.open = open_store
    with pytest.raises(StoreError, match=r"FaultyCheckpointStore.open raised Conn") as caught:
        await processor.start()

    assert isinstance(caught.value.__cause__, ConnectionResetError)


async def test_an_exception_of_a_stores_close_does_not_fail_stop(caplog):
    """It is logged; all partitions were released before."""
    setup = Setup()
    processor = setup.processor()
    store: Any = setup.store_by_owner["a"]
    async with processor:
        await seconds(5)
        store.close = _raise_foreign

    assert lines_of(caplog, "store_close_failed") == [("WARNING", "store_close_failed")]


async def test_a_store_whose_close_failed_can_be_used_by_the_next_processor():
    """It is not said to be in use for ever."""
    store: Any = MemoryCheckpointStore()
    store.close = _raise_foreign
    for _ in range(2):
        guarded = GuardedStore(store, get_logger("eventproc.test"))
        await guarded.open()
        await guarded.close()


def test_failures_of_a_store_call_are_logged_when_they_begin_and_end(caplog):
    """Once each, and again if the call fails again after it worked."""
    store: Any = MemoryCheckpointStore()
    guarded = GuardedStore(store, get_logger("eventproc.test"))
    group = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")

    async def failing(*_):
        await _raise_foreign()

    async def scenario():
        async with guarded:
            works = store.list_members
            for method in (failing, works, works, failing):
                store.list_members = method
                with suppress(StoreError):
                    await guarded.list_members(group)

    caplog.set_level(logging.INFO, "eventproc")
    run_virtual(scenario())

    assert lines_of(caplog, "store_call_failed", "store_call_recovered") == [
        ("ERROR", "store_call_failed"),
        ("INFO", "store_call_recovered"),
        ("ERROR", "store_call_failed"),
    ]


async def test_a_cancellation_that_a_store_swallows_still_cancels_its_caller():
    """Otherwise a loop around the call would go on, and ``stop`` would wait for it for ever."""
    group = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")

    class Swallowing(MemoryCheckpointStore):
        async def list_members(self, group):
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            return await super().list_members(group)

    async with GuardedStore(Swallowing(), get_logger("eventproc.test")) as guarded:
        call = asyncio.create_task(guarded.list_members(group))
        await seconds(1)
        call.cancel()
        await asyncio.wait([call])

    assert call.cancelled()


async def test_a_store_that_could_not_be_opened_may_be_given_to_another_processor():
    """A program makes a new processor after a start that failed, and keeps its store."""

    class Late(MemoryCheckpointStore):
        is_there = False

        async def open(self):
            if not self.is_there:
                raise StoreUnavailableError("no answer")
            await super().open()

    store = Late()
    group = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
    first, second = (GuardedStore(store, get_logger("test")) for _ in range(2))
    with pytest.raises(StoreUnavailableError):
        await first.open()
    store.is_there = True
    async with second:
        assert (await second.list_members(group)).members == ()
