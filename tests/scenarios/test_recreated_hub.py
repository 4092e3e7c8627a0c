"""A hub that was deleted and created again under its name: positions of the former one are void."""

import logging
from datetime import timedelta
from typing import Any

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import HubRecreatedError, RecreatedHub
from eventproc.admin import CheckpointMove, move_checkpoint
from tests.scenarios.group_setup import Noting, Setup, seconds

EARLIEST: Any = {"recreated_hub": RecreatedHub.EARLIEST}
SETTLED_S = 93.0
"""Not a multiple of the time between two reads of the partition ids."""


class Counting(Noting):
    """Records events and errors, and counts the events in its state."""

    errors: list[Exception]

    async def process_events(self, context, events):
        """Count."""
        await super().process_events(context, events)
        context.state = str(int(context.state or b"0") + len(events)).encode()

    async def process_error(self, context, error):
        """Record it."""
        self.errors.append(error)


def make_in(setup):
    """Return a factory whose handlers share one list of errors."""
    Counting.errors = []
    return lambda: Counting(setup)


def recreate(setup, count):
    """Delete the hub, create it again, publish so many events, and forget what was handled."""
    setup.hub.recreate()
    setup.publish(count)
    setup.handled.clear()


def reports(caplog):
    """Return level, policy and position of each report."""
    return [
        (record.levelno, record.policy, record.sequence_number)
        for record in caplog.records
        if record.getMessage().startswith("hub_recreated")
    ]


def noticed_at(count, is_running):
    """A running processor reads a hub that is longer now until it notices, at most a minute."""
    return 199 if is_running and count == 200 else 99


@pytest.mark.parametrize("count", [0, 3, 200], ids=["empty", "shorter", "longer"])
@pytest.mark.parametrize("is_running", [True, False], ids=["running", "stopped"])
async def test_earliest_handles_every_event_of_the_new_hub(count, is_running, caplog):
    """Whether the processor runs meanwhile or starts later, and the state begins anew."""
    setup = Setup()
    setup.publish(100)
    async with setup.processor(make_in(setup), **EARLIEST):
        await seconds(SETTLED_S)
        if is_running:
            recreate(setup, count)
            await seconds(SETTLED_S)
    if not is_running:
        await seconds(1)
        recreate(setup, count)
        async with setup.processor(make_in(setup), **EARLIEST):
            await seconds(SETTLED_S)
    setup.publish(1)
    async with setup.processor(make_in(setup), **EARLIEST):
        await seconds(SETTLED_S)

    assert sorted(set(setup.numbers())) == list(range(count + 1))
    assert setup.checkpoint().sequence_number == count
    assert setup.checkpoint().state == str(count + 1).encode()
    assert reports(caplog) == [(logging.WARNING, "earliest", noticed_at(count, is_running))]


@pytest.mark.parametrize("count", [3, 200], ids=["shorter", "longer"])
@pytest.mark.parametrize("is_running", [True, False], ids=["running", "stopped"])
async def test_by_default_nothing_is_handled_until_an_operator_moves_the_checkpoint(
    count, is_running, caplog
):
    """Not even when the new hub has grown beyond the position, or the process was restarted."""
    setup = Setup()
    setup.publish(100)
    async with setup.processor(make_in(setup)):
        await seconds(SETTLED_S)
        if is_running:
            recreate(setup, count)
            await seconds(SETTLED_S)
    if not is_running:
        await seconds(1)
        recreate(setup, count)
    async with setup.processor(make_in(setup)) as processor:
        await seconds(SETTLED_S)
        setup.publish(300 - count)
        setup.handled.clear()
        await seconds(SETTLED_S)
        (pump,) = processor.statistics().pumps
        before = list(setup.handled)
        move = CheckpointMove(partition_id="0", offset="-1", sequence_number=-1)
        async with MemoryCheckpointStore(setup.account) as store:
            await move_checkpoint(
                store, setup.group, move, token="t", expiration=timedelta(minutes=1)
            )
        await seconds(SETTLED_S)

    assert before == []
    known = "does not fit the hub" if is_running else "is older than the hub"
    refusal = pump.checkpoint_error or ""
    assert known in refusal
    assert "checkpoints reset --partition 0 --to earliest" in refusal
    assert {type(error) for error in Counting.errors} == {HubRecreatedError}
    assert sorted(set(setup.numbers())) == list(range(300))
    assert set(reports(caplog)) == {(logging.ERROR, "stop", noticed_at(count, is_running))}


async def test_a_checkpoint_that_was_deleted_by_hand_ends_the_wait(caplog):
    """The partition begins at the initial position, and the log says that it is resolved."""
    caplog.set_level(logging.INFO)
    setup = Setup()
    setup.publish(100)
    async with setup.processor(make_in(setup)):
        await seconds(SETTLED_S)
        recreate(setup, 3)
        await seconds(SETTLED_S)
        del setup.account.records(setup.group).checkpoint_by_partition["0"]
        await seconds(SETTLED_S)

    assert setup.numbers() == [0, 1, 2]
    assert sum(line.startswith("hub_recreation_resolved") for line in caplog.messages) == 1


async def test_a_hub_that_is_created_again_before_any_event_is_just_read(caplog):
    """The position before the first event is one of any hub."""
    setup = Setup()
    async with setup.processor(make_in(setup)):
        await seconds(SETTLED_S)
        recreate(setup, 0)
        await seconds(SETTLED_S)
        setup.publish(5)
        await seconds(SETTLED_S)

    assert setup.numbers() == [0, 1, 2, 3, 4]
    assert reports(caplog) == []


async def test_a_new_hub_is_read_although_the_clock_of_the_store_is_behind_the_hubs(caplog):
    """The first position is then older than its hub, and of no hub in particular."""
    setup = Setup()
    setup.hub.created_at = setup.now() + timedelta(minutes=10)
    async with setup.processor(make_in(setup)):
        await seconds(SETTLED_S)
        setup.publish(3)
        await seconds(SETTLED_S)
        setup.publish(2)
        await seconds(SETTLED_S)

    assert setup.numbers() == [0, 1, 2, 3, 4]
    assert reports(caplog) == []


async def test_a_source_without_a_creation_time_notices_a_position_beyond_the_end():
    """As of Kafka: a shorter log is noticed, once, and marked, so that it may grow."""
    setup = Setup()
    setup.publish(100)
    async with setup.processor(make_in(setup)):
        await seconds(SETTLED_S)
        recreate(setup, 3)
        setup.hub.created_at = None
        await seconds(SETTLED_S)
        setup.publish(300)
        await seconds(SETTLED_S)

    assert setup.numbers() == []
    assert setup.checkpoint().sequence_number == 99
    assert setup.checkpoint().writer.startswith("former-hub//a/")


async def test_a_stop_does_not_wait_for_the_mark(caplog):
    """The store is away: the next owner finds it out by itself."""
    setup = Setup()
    setup.publish(100)
    processor = setup.processor(make_in(setup), shutdown_timeout=timedelta(seconds=5))
    async with processor:
        await seconds(SETTLED_S)
        with setup.store_by_owner["a"].outage():
            recreate(setup, 3)
            await seconds(5)
            begin_s = setup.now_s
            await processor.stop()
            found = setup.now_s - begin_s

    assert found <= 6
