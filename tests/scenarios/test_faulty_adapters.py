"""User's sinks, stores, sources and settings that break the rules of their port."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from eventproc import CheckpointPolicy, ConfigurationError, DeadLetter, EventProcessorConfig
from eventproc.dead_letters import FunctionDeadLetterSink, MemoryDeadLetterSink
from tests.scenarios.five_events import LETTER, served
from tests.scenarios.group_setup import Setup, seconds, source_of
from tests.scenarios.test_unusual_errors import (
    FailingAtOne,
    await_a_cancelled_task,
    raise_unprintable,
    warnings_of,
)


async def test_a_source_that_raises_cancelled_error_is_opened_again_after_a_wait(caplog):
    """The failure is logged."""
    setup = Setup()
    setup.publish(3)
    processor = setup.processor()
    source: Any = source_of(processor)
    opened = source.open_receiver
    count = 0

    async def open_receiver(*arguments):
        nonlocal count
        count += 1
        if count <= 3:
            await await_a_cancelled_task()
        return await opened(*arguments)

    source.open_receiver = open_receiver
    async with processor:
        await seconds(60)

    assert setup.numbers() == [0, 1, 2]
    assert warnings_of(caplog) == [("ERROR", "pump_failed")] * 3


class FailingSink(MemoryDeadLetterSink):
    """Fails in several ways, and then stores."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    async def store(self, letter: DeadLetter) -> None:
        """Raise an error, then ``CancelledError``, then store."""
        self.count += 1
        if self.count == 1:
            raise OSError("disk full")
        if self.count == 2:
            await await_a_cancelled_task()
        await super().store(letter)


def test_any_error_of_a_sink_means_that_the_letter_is_not_stored(caplog):
    """Storing is retried, and no other event is delivered again."""
    sink = FailingSink()
    setup, made, _ = served(
        lambda setup: FailingAtOne(setup, raise_unprintable), sink=sink, failure_policy=LETTER
    )

    assert (sink.count, len(sink.letters), len(made)) == (3, 1, 1)
    assert setup.numbers() == [0, 1, 3, 4]
    assert ("ERROR", "dead_letter_failed") in warnings_of(caplog)


def test_a_sink_that_hangs_counts_as_a_stall():
    """The partition is given up and started again."""
    count = 0

    async def take(_: DeadLetter) -> None:
        nonlocal count
        count += 1
        if count == 1:
            await asyncio.Event().wait()

    _, made, statistics = served(
        lambda setup: FailingAtOne(setup, raise_unprintable),
        sink=FunctionDeadLetterSink(take),
        failure_policy=LETTER,
        failover_timeout=timedelta(seconds=10),
    )

    assert (count, len(made), statistics.counters.stall_count) == (2, 2, 1)
    assert statistics.counters.dead_lettered_count == 1


async def test_unexpected_errors_of_checkpoint_writes_lose_nothing(caplog):
    """They are logged once, and the newest position is stored when writes succeed again."""
    setup = Setup()
    processor = setup.processor(checkpoint_policy=CheckpointPolicy(max_events=1))
    store: Any = setup.store_by_owner["a"]
    update = store.update_checkpoint

    async def failing(*arguments):
        raise OSError("a bug of the adapter")

    async with processor:
        await seconds(5)
        store.update_checkpoint = failing
        setup.publish(3)
        await seconds(30)
        during = setup.numbers(), setup.checkpointed()
        store.update_checkpoint = update
        setup.publish(3)
        await seconds(30)
        after = (setup.numbers(), setup.checkpointed())

    assert during == ([0, 1, 2], None)
    assert after == ([0, 1, 2, 3, 4, 5], 5)
    assert warnings_of(caplog) == [
        ("ERROR", "store_call_failed"),
        ("WARNING", "checkpoint_failed"),
    ]


async def test_a_stall_is_noticed_after_an_unexpected_error_of_the_source(caplog):
    """The pump is started again."""
    setup = Setup()
    hub: Any = setup.hub
    asked = hub.partition_properties

    def failing(partition_id):
        raise OSError("a bug of the source")

    async with setup.processor(stall_timeout=timedelta(seconds=60)) as processor:
        setup.publish(3)
        await seconds(5)
        hub.partition_properties = failing
        await seconds(100)
        hub.partition_properties = asked
        setup.hub.stall("0")
        setup.publish(3)
        await seconds(100)
        found = processor.statistics().counters.stall_count

    assert found == 1
    assert ("ERROR", "pump_failed") in warnings_of(caplog)


@pytest.mark.parametrize("name", ["rate_max", "partition_rate_max"])
@pytest.mark.parametrize("rate", [0, -1, float("inf"), float("nan")])
def test_a_rate_that_is_not_a_positive_number_is_refused(name, rate):
    """With the remedy: there are other ways to say none, and no limit."""
    with pytest.raises(ConfigurationError, match=f"{name} is {rate}: give a positive number"):
        EventProcessorConfig(**{name: rate})


async def test_an_unexpected_error_of_a_hand_over_is_logged_and_the_group_becomes_balanced(caplog):
    """The next poll shows which processor owns the partition."""
    setup = Setup(2)
    a = setup.processor()
    await a.start()
    await seconds(5)
    store: Any = setup.store_by_owner["a"]
    claim = store.claim_ownership
    failed: list[object] = []

    async def fail_first(group, claims):
        if not failed and {c.owner_id for c in claims} == {"b"}:
            failed.append(claims)
            raise OSError("disk full")
        return await claim(group, claims)

    store.claim_ownership = fail_first
    async with setup.processor(owner_id="b"):
        await seconds(30)
        owners = setup.owners()
        await a.stop()

    assert (len(failed), sorted(map(str, owners.values()))) == (1, ["a", "b"])
    assert ("ERROR", "store_call_failed") in warnings_of(caplog)
