"""What a store of the user's raises, though no store may: it ends no processor, and is told."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import CheckpointPolicy, ConsumerGroup, StoreError
from eventproc.logs import get_logger
from eventproc.runtime.guarded_store import GuardedStore
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Scene, seconds
from tests.stories.test_blocked_partitions import lines_of


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
def test_what_a_store_of_the_users_raises_ends_no_processor(
    name: str, fail: Callable[[], Awaitable[None]], caplog: Any
) -> None:
    """Whatever it is, in any method, by day and at a stop; it is told once, and all is handled."""

    async def story():
        scene = Scene(2)
        processor = scene.processor(
            checkpoint_policy=CheckpointPolicy(max_events=1),
            load_balancing_interval=timedelta(seconds=5),
        )
        store: Any = scene.store_by_owner["a"]
        works = getattr(store, name)

        async def broken(*_):
            await fail()

        for round_number in range(2):
            async with processor:
                setattr(store, name, works)
                await seconds(10)
                setattr(store, name, broken)
                scene.publish(2)
                await seconds(30)
                if round_number == 0:
                    setattr(store, name, works)
                    await seconds(120)
                    assert processor.statistics().owned == ("0", "1")
                    assert scene.checkpointed() == 1
            setattr(store, name, works)
        async with processor:
            await seconds(120)
            return scene.checkpointed()

    caplog.set_level(logging.INFO, "eventproc")

    assert run_virtual(story()) == 3
    assert not [
        r for r in caplog.records if getattr(r, "event", "") in {"processor_failed", "pump_failed"}
    ]
    told = [r for r in caplog.records if getattr(r, "event", "") == "store_call_failed"]
    assert {(r.levelname, r.call) for r in told} <= {("ERROR", name)}
    assert len(told) <= 2


def test_what_a_store_of_the_users_raises_at_the_start_is_named():
    """With the class, the method and the remedy; the cause is chained."""

    async def story():
        scene = Scene()
        processor = scene.processor()
        store: Any = scene.store_by_owner["a"]

        async def open_store():
            await _raise_foreign()

        store.open = open_store
        with pytest.raises(StoreError, match=r"FaultyCheckpointStore.open raised Conn") as caught:
            await processor.start()
        return caught.value.__cause__

    assert isinstance(run_virtual(story()), ConnectionResetError)


def test_a_store_that_cannot_be_closed_spoils_no_stop(caplog):
    """All was handed over before; it is told."""

    async def story():
        scene = Scene()
        processor = scene.processor()
        store: Any = scene.store_by_owner["a"]
        async with processor:
            await seconds(5)
            store.close = _raise_foreign

    run_virtual(story())

    assert lines_of(caplog, "store_close_failed") == [("WARNING", "store_close_failed")]


def test_what_a_store_raises_again_after_it_worked_is_told_again(caplog):
    """Once for each time that it begins, and its end once."""
    store: Any = MemoryCheckpointStore()
    guarded = GuardedStore(store, get_logger("eventproc.test"))
    group = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")

    async def broken(*_):
        await _raise_foreign()

    async def story():
        async with guarded:
            works = store.list_members
            for method in (broken, works, works, broken):
                store.list_members = method
                with suppress(StoreError):
                    await guarded.list_members(group)

    caplog.set_level(logging.INFO, "eventproc")
    run_virtual(story())

    assert lines_of(caplog, "store_call_failed", "store_call_recovered") == [
        ("ERROR", "store_call_failed"),
        ("INFO", "store_call_recovered"),
        ("ERROR", "store_call_failed"),
    ]
