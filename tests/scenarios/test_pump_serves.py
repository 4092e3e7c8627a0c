"""How one pump serves: where it begins to read, when it waits, and what it reports."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from eventproc import CheckpointPolicy, EventPosition, FailurePolicy, StoreRejectedError
from eventproc._delivery.delivery import RECEIVE_WAIT_MAX, RECEIVE_WAIT_MIN
from eventproc._delivery.flow_control import RateLimiter
from eventproc.models import CloseReason, SequenceRange, alone
from eventproc.ports import PartitionReceiver
from eventproc.sources.memory import MemoryEventSource
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup, seconds
from tests.unit.eventproc._delivery.pump_fixture import SHUTDOWN_S, PumpFixture


class NotingSource(MemoryEventSource):
    """Notes the position of each link; with *begins_at_first*, links begin at the first event."""

    def __init__(self, setup: Setup, *, begins_at_first: bool = False) -> None:
        super().__init__(setup.hub)
        self.positions: list[EventPosition] = []
        self.asked_for: list[int] = []
        """How many events each ``receive`` asked for."""

        self._begins_at_first = begins_at_first

    async def open_receiver(self, consumer_group, partition_id, position):
        """Note the position."""
        self.positions.append(position)
        if self._begins_at_first:
            position = EventPosition.earliest()
        receiver = await super().open_receiver(consumer_group, partition_id, position)
        receive = receiver.receive

        async def noting(*, events_max, wait_max):
            self.asked_for.append(events_max)
            return await receive(events_max=events_max, wait_max=wait_max)

        receiver.receive = noting  # type: ignore[method-assign]
        return receiver


async def test_a_link_that_is_opened_again_begins_after_the_last_handled_event():
    """Before one is handled, where the first link began."""
    begins_at = EventPosition.from_enqueued_time(datetime(2020, 1, 1, tzinfo=UTC))
    fixture = PumpFixture(initial_position=begins_at)
    source = fixture.source = NotingSource(fixture.setup)
    running = await fixture.start()
    fixture.setup.hub.break_links()
    await seconds(1)
    fixture.setup.publish(3)
    await seconds(1)
    fixture.setup.hub.break_links()
    await seconds(1)
    await running.end()
    stored = fixture.setup.checkpoint()
    assert stored is not None
    assert stored.offset is not None

    assert source.positions == [
        begins_at,
        begins_at,
        EventPosition.from_offset(stored.offset, sequence_number=2),
    ]


async def test_on_idle_is_called_after_each_idle_timeout_without_events():
    """Exactly then, however long it is, and counted from the end of the last call."""
    fixture = PumpFixture(idle_timeout=timedelta(seconds=200))
    running = await fixture.start()
    await seconds(449)
    fixture.handler.call_s = 7
    fixture.setup.publish(1)  # At 450: handled at 457.
    await seconds(450)
    await running.end()

    assert fixture.handler.idle_at_s == [200, 400, 657, 857]


async def test_on_idle_is_not_called_during_a_pause_or_while_a_lane_is_at_work():
    """The partition is not idle then."""
    fixture = PumpFixture(
        idle_timeout=timedelta(seconds=10), key_concurrency=2, key_selector=lambda _: 0
    )
    fixture.handler.call_s = 25
    running = await fixture.start()
    fixture.setup.publish(1)  # At 1: handled at 26.
    await seconds(34)
    running.pump.pause()  # At 35.
    await seconds(40)
    running.pump.resume()  # At 75.
    await seconds(15)
    await running.end()

    assert fixture.handler.idle_at_s == [31, 81]


class EarlySource(MemoryEventSource):
    """Opens links that wait a millisecond less than they are told, and notes those waits."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup.hub)
        self.waits: list[timedelta] = []

    async def open_receiver(self, consumer_group, partition_id, position):
        """Open such a link."""
        return EarlyLink(self)


class EarlyLink(PartitionReceiver):
    """Delivers nothing."""

    last_enqueued = None

    def __init__(self, source: EarlySource) -> None:
        self._source = source

    async def receive(self, *, events_max, wait_max):
        """Wait a little less, and return no event."""
        self._source.waits.append(wait_max)
        await seconds(wait_max.total_seconds() - 0.001)
        return []

    async def close(self):
        """Do nothing."""


@pytest.mark.parametrize("idle_timeout", [None, timedelta(seconds=10)])
async def test_one_wait_for_events_is_neither_endless_nor_a_busy_loop(idle_timeout):
    """Even if the timers of a source fire a little early."""
    fixture = PumpFixture(idle_timeout=idle_timeout)
    source = fixture.source = EarlySource(fixture.setup)
    running = await fixture.start()
    await seconds(300)
    await running.end()
    waits, idle_at_s = source.waits, fixture.handler.idle_at_s

    if idle_timeout is None:
        assert set(waits) == {RECEIVE_WAIT_MAX}
    else:
        assert min(waits) == RECEIVE_WAIT_MIN
        assert max(waits) == idle_timeout
        assert len(idle_at_s) == 30


async def test_the_statistics_show_a_checkpoint_that_is_refused():
    """The text says what to do; ``None`` again as soon as it is written."""
    fixture = PumpFixture(checkpoint_policy=CheckpointPolicy(max_events=1))
    running = await fixture.start()
    shown = [running.pump.statistics().checkpoint_error]
    fixture.checkpoints.write_error = StoreRejectedError("grant the right to write")
    fixture.checkpoints.is_failing = True
    fixture.setup.publish(1)
    await seconds(2)
    shown.append(running.pump.statistics().checkpoint_error)
    fixture.checkpoints.is_failing = False
    await seconds(10)
    shown.append(running.pump.statistics().checkpoint_error)
    await running.end()

    assert shown == [None, "grant the right to write", None]


@pytest.mark.parametrize("key_concurrency", [1, 3])
async def test_events_that_fail_again_and_again_are_a_stall(key_concurrency):
    """Although the hub has no further ones: another processor may be able to handle them."""
    fixture = PumpFixture(
        failover_timeout=timedelta(seconds=10),
        key_concurrency=key_concurrency,
        key_selector=lambda event: event.sequence_number,
    )

    async def fail(context, events):
        raise RuntimeError

    fixture.handler.process_events = fail  # type: ignore[method-assign]
    fixture.setup.publish(1)
    running = await fixture.start()
    await running.ended()

    assert (running.task.result(), fixture.handler.closed) == (
        CloseReason.STALLED,
        [CloseReason.STALLED],
    )


async def test_waiting_for_the_lease_is_no_stall():
    """The handler may not be called meanwhile; the event is handled when the lease is renewed."""
    fixture = PumpFixture(stall_timeout=timedelta(seconds=10))
    running = await fixture.start()
    fixture.remaining_s = 0.0
    fixture.setup.publish(1)
    await seconds(100)
    stall_count, before = running.pump.counters.stall_count, fixture.setup.numbers()
    fixture.remaining_s = 1e9
    await seconds(1)
    await running.end()

    assert (stall_count, before, fixture.setup.numbers()) == (0, [], [0])


@pytest.mark.parametrize("own", [None, 2])
async def test_a_batch_is_no_larger_than_the_lowest_rate_allows(own):
    """Of the processor's limit and the partition's."""
    fixture = PumpFixture(partition_rate_max=own)
    fixture.rate_limits = [RateLimiter(7), RateLimiter(4)]
    fixture.setup.publish(40)
    running = await fixture.start()
    await seconds(19)
    at_20_s = len(fixture.setup.handled)
    await running.end()

    per_second = own or 4
    assert max(fixture.handler.sizes) == per_second
    assert min(40, 20 * per_second) <= at_20_s <= 21 * per_second


async def test_events_from_before_the_position_are_not_delivered():
    """A source may begin earlier than it was told; events that kill are counted all the same."""
    fixture = PumpFixture(failure_policy=FailurePolicy(deliveries_max=3), batch_size_max=2)
    fixture.source = NotingSource(fixture.setup, begins_at_first=True)
    fixture.setup.publish(10)
    pump = await fixture.pump()
    await fixture.checkpoints.store_by("b/1/1", 5)
    asyncio.get_running_loop().call_later(5, lambda: pump.end(CloseReason.SHUTDOWN))
    await pump.run()

    assert fixture.setup.numbers() == [6, 7, 8, 9]


async def test_nothing_is_received_while_completed_events_leave_no_room():
    """They lie above an event that is under way, and no source can be asked for zero events."""
    fixture = PumpFixture(
        key_concurrency=2,
        max_in_flight_events=3,
        batch_size_max=2,
        key_selector=lambda event: event.sequence_number,
    )
    source = fixture.source = NotingSource(fixture.setup)
    fixture.handler.call_s = 20
    pump = await fixture.pump()
    await fixture.checkpoints.store_by("b/1/1", -1, completed=(SequenceRange(1, 6),))
    fixture.setup.publish(8)
    asyncio.get_running_loop().call_later(60, lambda: pump.end(CloseReason.SHUTDOWN))
    await pump.run()
    asked_for = source.asked_for

    assert fixture.setup.numbers() == [0, 7]
    assert set(asked_for) <= {1, 2}
    assert len(asked_for) < 20


def test_a_pump_that_is_forced_delivers_an_event_whose_count_is_at_the_limit():
    """An operator resumed the partition; otherwise the event is given up."""

    async def scenario(*, is_forced: bool):
        fixture = PumpFixture(failure_policy=FailurePolicy(deliveries_max=3))
        fixture.setup.publish(2)
        pump = await fixture.pump(is_forced=is_forced)
        await fixture.checkpoints.store_by("b/1/1", -1, isolation=alone(2))
        asyncio.get_running_loop().call_later(5, lambda: pump.end(CloseReason.SHUTDOWN))
        return await pump.run(), fixture.setup.numbers()

    assert run_virtual(scenario(is_forced=True)) == (CloseReason.SHUTDOWN, [0, 1])
    assert run_virtual(scenario(is_forced=False)) == (CloseReason.HANDLER_FAILED, [])


async def test_a_stop_ends_the_wait_for_room_at_once():
    """The store fails, so nothing would make room; the last checkpoint is tried as ever."""
    fixture = PumpFixture(
        checkpoint_policy=CheckpointPolicy(max_events=1, max_uncommitted_events=2),
        batch_size_max=1,
    )
    running = await fixture.start()
    fixture.checkpoints.is_failing = True
    fixture.setup.publish(9)
    await seconds(5)
    waiting = fixture.setup.numbers()
    took_s = await running.end()

    assert (waiting, fixture.setup.numbers(), took_s) == ([0, 1], [0, 1], SHUTDOWN_S)
