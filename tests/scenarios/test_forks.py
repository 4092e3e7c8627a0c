"""What a fork leaves of a processor: each child is a member of its own, or is told why not."""

import asyncio
import os
from datetime import timedelta
from functools import partial
from random import Random

import pytest

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import DuplicateOwnerError, EventProcessor, EventProcessorConfig, PartitionHandler
from eventproc._runtime.store_thread import ThreadExecutor
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.forks import forked, refusals
from tests.scenarios.group_setup import Setup, seconds


class Idle(PartitionHandler):
    """Does nothing."""

    async def process_event(self, context, event):
        """Do nothing."""


QUICK = EventProcessorConfig(
    load_balancing_interval=timedelta(seconds=0.1), rebalance_interval=timedelta(seconds=0.05)
)


@pytest.mark.real_time
async def test_a_processor_built_before_a_fork_is_another_member_in_each_child(tmp_path):
    """As with gunicorn's ``--preload``: the children share the partitions."""
    hub, path = MemoryHub(2), tmp_path / "group.db"
    processor = EventProcessor(
        source=MemoryEventSource(hub), store=SqliteCheckpointStore(path), handler=Idle, config=QUICK
    )
    ending, asked = os.pipe()

    def serve(writing: int) -> None:
        async def serve_until_asked() -> None:
            async with processor:
                os.write(writing, processor.owner_id.encode())
                await asyncio.to_thread(os.read, ending, 1)

        asyncio.run(serve_until_asked())

    async with SqliteCheckpointStore(path) as store:
        with forked(serve) as first, forked(serve) as second:
            ids = {
                (await asyncio.to_thread(os.read, end, 1000)).decode() for end in (first, second)
            }
            owners: set[str | None] = set()
            while owners != ids and len(ids) > 1:
                listed = await store.list_ownership(processor.consumer_group)
                owners = {each.owner_id for each in listed.ownerships}
                await asyncio.sleep(0.02)
            os.write(asked, b"..")
    os.close(asked)
    os.close(ending)

    assert len(ids) == 2
    assert not processor.owner_id


def processor_of(setup: Setup, owner_id: str | None, rng: Random) -> EventProcessor:
    """A processor with this generator, in the group of the setup."""
    return EventProcessor(
        source=setup.make_source(),
        store=MemoryCheckpointStore(setup.account),
        handler=Idle,
        owner_id=owner_id,
        config=EventProcessorConfig(uses_store_thread=False),
        rng=rng,
    )


def test_equal_generators_do_not_make_two_processors_one():
    """They have other owner ids; if they are given the same one, the second is refused."""

    async def scenario():
        setup = Setup()
        async with (
            processor_of(setup, None, Random(7)) as a,
            processor_of(setup, None, Random(7)) as b,
        ):
            ids = {a.owner_id, b.owner_id}
        async with processor_of(setup, "same", Random(7)):
            try:
                async with processor_of(setup, "same", Random(7)):
                    await seconds(1)
            except DuplicateOwnerError:
                return ids
        return set()

    assert len(run_virtual(scenario())) == 2


async def test_each_start_draws_an_identity():
    """Also one of the same processor: a record of its former run is never taken for its own."""
    setup = Setup()
    named, unnamed = processor_of(setup, "a", Random(1)), processor_of(setup, None, Random(1))
    drawn = []
    for _ in range(2):
        async with named, unnamed:
            members = setup.account.records(setup.group).member_by_owner
            drawn += [members["a"].incarnation, unnamed.owner_id]
            drawn.append(members[unnamed.owner_id].incarnation)

    assert len(set(drawn)) == len(drawn) == 6


@pytest.mark.real_time
async def test_a_running_processor_refuses_every_call_in_a_child():
    """Its loop and its threads run in the parent; there it goes on."""
    processor = EventProcessor(
        source=MemoryEventSource(MemoryHub(1)),
        store=MemoryCheckpointStore(MemoryAccount()),
        handler=Idle,
        config=QUICK,
    )
    async with processor:
        refused = refusals(
            {
                "start": processor.start,
                "stop": processor.stop,
                "finished": processor.finished,
                "statistics": processor.statistics,
                "pause": partial(processor.pause, "0"),
                "resume": partial(processor.resume, "0"),
            }
        )
        wanted = f"processor {processor.owner_id!r} was opened in process {os.getpid()}"
        is_running = processor.statistics().owner_id == processor.owner_id

    assert {name: text[: len(wanted)] for name, text in refused.items()} == dict.fromkeys(
        refused, wanted
    )
    assert is_running


@pytest.mark.real_time
async def test_a_call_of_the_store_in_a_child_raises_at_once():
    """A handler's context that reached a child does not wait for a thread that is not there."""
    executor = ThreadExecutor("test")
    refused = refusals({"call": lambda: executor.call(asyncio.sleep(0))})
    await executor.close()

    assert "was opened in process" in refused["call"]
