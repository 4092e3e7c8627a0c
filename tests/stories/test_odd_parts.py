"""Sinks, stores, sources and settings of the user's that do what nobody should."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from eventproc import CheckpointPolicy, ConfigurationError, DeadLetter, EventProcessorConfig
from eventproc.dead_letters import FunctionDeadLetterSink, MemoryDeadLetterSink
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Scene, seconds
from tests.stories.test_odd_handlers import (
    LETTER,
    Choking,
    await_what_was_cancelled,
    raise_mute,
    served,
    warnings_of,
)


def test_a_source_that_ends_as_if_cancelled_rests_and_begins_anew(caplog):
    """Aloud, and not at full speed."""

    async def story():
        scene = Scene()
        scene.publish(3)
        processor = scene.processor()
        source: Any = processor._parts.source
        opened = source.open_receiver
        count = 0

        async def open_receiver(*arguments):
            nonlocal count
            count += 1
            if count <= 3:
                await await_what_was_cancelled()
            return await opened(*arguments)

        source.open_receiver = open_receiver
        async with processor:
            await seconds(60)
        return scene.numbers()

    assert run_virtual(story()) == [0, 1, 2]
    assert warnings_of(caplog) == [("ERROR", "pump_failed")] * 3


class Sinking(MemoryDeadLetterSink):
    """Fails in the ways of other people's sinks, then stores."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    async def store(self, letter: DeadLetter) -> None:
        """Break, then pretend to be cancelled, then do it."""
        self.count += 1
        if self.count == 1:
            raise OSError("disk full")
        if self.count == 2:
            await await_what_was_cancelled()
        await super().store(letter)


def test_whatever_a_sink_raises_means_that_it_did_not_store(caplog):
    """It is tried again in place, and nothing else comes again."""
    sink = Sinking()
    scene, made, _ = served(
        lambda scene: Choking(scene, raise_mute), sink=sink, failure_policy=LETTER
    )

    assert (sink.count, len(sink.letters), len(made)) == (3, 1, 1)
    assert scene.numbers() == [0, 1, 3, 4]
    assert ("ERROR", "dead_letter_failed") in warnings_of(caplog)


def test_a_sink_that_hangs_is_a_stall():
    """The partition is given up for it, and another attempt made."""
    count = 0

    async def take(_: DeadLetter) -> None:
        nonlocal count
        count += 1
        if count == 1:
            await asyncio.Event().wait()

    _, made, statistics = served(
        lambda scene: Choking(scene, raise_mute),
        sink=FunctionDeadLetterSink(take),
        failure_policy=LETTER,
        stall_timeout=timedelta(seconds=10),
    )

    assert (count, len(made), statistics.counters.stall_count) == (2, 2, 1)
    assert statistics.counters.dead_lettered_count == 1


def test_a_store_that_breaks_its_promise_loses_nothing(caplog):
    """What no store should raise is told aloud once, and the newest position waits for it."""

    async def story():
        scene = Scene()
        processor = scene.processor(checkpoint_policy=CheckpointPolicy(max_events=1))
        store: Any = scene.store_by_owner["a"]
        update = store.update_checkpoint

        async def broken(*arguments):
            raise OSError("a bug of the adapter")

        async with processor:
            await seconds(5)
            store.update_checkpoint = broken
            scene.publish(3)
            await seconds(30)
            during = scene.numbers(), scene.checkpointed()
            store.update_checkpoint = update
            scene.publish(3)
            await seconds(30)
            return during, (scene.numbers(), scene.checkpointed())

    during, after = run_virtual(story())

    assert during == ([0, 1, 2], None)
    assert after == ([0, 1, 2, 3, 4, 5], 5)
    assert warnings_of(caplog) == [
        ("ERROR", "store_call_failed"),
        ("WARNING", "checkpoint_failed"),
    ]


def test_a_source_that_breaks_its_promise_does_not_blind_the_watchdog(caplog):
    """The pump begins anew, and the next stall is noticed."""

    async def story():
        scene = Scene()
        hub: Any = scene.hub
        asked = hub.partition_properties

        def broken(partition_id):
            raise OSError("a bug of the source")

        async with scene.processor(stall_timeout=timedelta(seconds=60)) as processor:
            scene.publish(3)
            await seconds(5)
            hub.partition_properties = broken
            await seconds(100)
            hub.partition_properties = asked
            scene.hub.stall("0")
            scene.publish(3)
            await seconds(100)
            return processor.statistics().counters.stall_count

    assert run_virtual(story()) == 1
    assert ("ERROR", "pump_failed") in warnings_of(caplog)


@pytest.mark.parametrize("name", ["rate_max", "partition_rate_max"])
@pytest.mark.parametrize("rate", [0, -1, float("inf"), float("nan")])
def test_a_rate_that_is_none_is_refused(name, rate):
    """With the remedy: there are other ways to say all, and nothing."""
    with pytest.raises(ConfigurationError, match=f"{name} is {rate}: give a positive number"):
        EventProcessorConfig(**{name: rate})


def test_a_gift_that_fails_is_told_and_the_partition_goes_on(caplog):
    """Whatever a store of the user's raises at that: the next look finds who owns it."""

    async def story():
        scene = Scene(2)
        a = scene.processor()
        await a.start()
        await seconds(5)
        store: Any = scene.store_by_owner["a"]
        claim = store.claim_ownership
        failed: list[object] = []

        async def fail_first(group, claims):
            if not failed and {c.owner_id for c in claims} == {"b"}:
                failed.append(claims)
                raise OSError("disk full")
            return await claim(group, claims)

        store.claim_ownership = fail_first
        async with scene.processor(owner_id="b"):
            await seconds(30)
            owners = scene.owners()
            await a.stop()
        return len(failed), sorted(map(str, owners.values()))

    assert run_virtual(story()) == (1, ["a", "b"])
    assert ("ERROR", "store_call_failed") in warnings_of(caplog)
