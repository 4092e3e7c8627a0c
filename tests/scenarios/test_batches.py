"""Batches that wait for more events: when a call begins, and what does not wait for it."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from eventproc import BlockingPartitionHandler, CloseReason, EventProcessorConfig
from eventproc.errors import ConfigurationError
from eventproc.testing import run_virtual
from tests.scenarios.column_setup import BatchSetup, Rows
from tests.scenarios.group_setup import Noting, Setup, seconds, source_of, until

TEN: Any = {"batch_min": 10, "batch_wait": timedelta(seconds=5)}


class Calls(Noting):
    """Records when each call began, and how many events it had."""

    def __init__(self, setup):
        super().__init__(setup)
        self.calls = []
        self.closed = []

    async def process_events(self, context, events):
        """Record it."""
        self.calls.append((round(self.setup.now_s, 2), len(events)))
        await super().process_events(context, events)

    async def close(self, context, reason):
        """Record when and why."""
        self.closed.append((round(self.setup.now_s, 2), reason))


class ColumnCalls(Rows):
    """The same for columns."""

    def __init__(self, setup):
        super().__init__(setup)
        self.at = []

    async def process_columns(self, context, columns):
        """Record it."""
        self.at.append((round(self.setup.now_s, 2), columns.num_rows))
        await super().process_columns(context, columns)


def result_of(acts, handler_class=Calls, setup_class=Setup, **settings):
    """Run acts of (second, what to do with setup and processor), until second 100."""

    async def scenario():
        setup = setup_class()
        handler = handler_class(setup)
        processor = setup.processor(lambda: handler, **settings)
        async with processor:
            for at_s, act in acts:
                await seconds(at_s - setup.now_s)
                act(setup, processor)
            await seconds(100 - setup.now_s)
        return setup, handler, processor

    return run_virtual(scenario())


def publishing(count):
    """An act: publish so many events."""
    return lambda setup, _: setup.publish(count)


def test_by_default_a_call_begins_with_the_first_event():
    """And has what was received by then."""
    _, handler, _ = result_of([(20, publishing(1)), (20.5, publishing(3))])

    assert handler.calls == [(20.0, 1), (20.5, 3)]


@pytest.mark.parametrize(
    ("acts", "calls"),
    [
        ([(20, 1)], [(25.0, 1)]),
        ([(20, 12)], [(20.0, 12)]),
        ([(20, 4), (22, 4), (24, 4)], [(24.0, 12)]),
        ([(20, 4), (24, 4), (26, 4)], [(25.0, 8), (31.0, 4)]),
        ([(20, 9), (20.5, 41)], [(20.5, 30), (20.5, 20)]),
    ],
    ids=["too few", "enough", "gathered", "late", "a call is full"],
)
@pytest.mark.parametrize("is_of_columns", [False, True], ids=["events", "columns"])
def test_a_call_waits_for_enough_events_or_for_so_long(acts, calls, is_of_columns):
    """The time counts from the first event; a call has no more than ``batch_size_max``."""
    kinds = (ColumnCalls, BatchSetup) if is_of_columns else (Calls, Setup)
    setup, handler, _ = result_of(
        [(at_s, publishing(count)) for at_s, count in acts], *kinds, **TEN, batch_size_max=30
    )

    assert (handler.at if is_of_columns else handler.calls) == calls
    assert setup.numbers() == list(range(sum(count for _, count in acts)))


def test_without_batch_min_a_call_waits_until_it_is_full():
    """Or for ``batch_wait``."""
    acts = [(20, publishing(4)), (21, publishing(30))]
    _, handler, _ = result_of(acts, batch_wait=timedelta(seconds=5), batch_size_max=20)

    assert handler.calls == [(21.0, 20), (26.0, 14)]


def test_a_call_of_columns_waits_ten_milliseconds_by_default():
    """Or for 4,096 rows."""
    acts = [(20, publishing(1)), (20.005, publishing(2)), (20.02, publishing(1))]
    acts += [(30, publishing(2000)), (30.004, publishing(3000))]
    _, handler, _ = result_of(acts, ColumnCalls, BatchSetup, batch_size_max=10_000)

    assert handler.at == [(20.01, 3), (20.03, 1), (30.0, 5000)]


@pytest.mark.real_time
async def test_a_blocking_handler_gets_batches_in_the_same_way():
    """Its thread is not used while a batch waits."""

    class Blocking(BlockingPartitionHandler):
        sizes: list[int] = []  # noqa: RUF012 - shared by all
        done = threading.Event()

        def process_events(self, context, events):
            self.sizes.append(len(events))
            if sum(self.sizes) == 25:
                self.done.set()

    setup = Setup()
    async with setup.processor(Blocking, batch_min=10, batch_wait=timedelta(seconds=0.2)):
        await until(lambda: setup.owners().get("0"))
        setup.publish(5)
        await asyncio.sleep(0)
        setup.publish(5)
        await until(lambda: Blocking.sizes)
        setup.publish(15)
        await until(Blocking.done.is_set)

    assert Blocking.sizes == [10, 15]


LONG: Any = {"batch_min": 10, "batch_wait": timedelta(seconds=60)}


async def test_a_stop_does_not_wait_for_a_batch():
    """Nor are its events handled: the next owner receives them again."""
    setup = Setup()
    handler = Calls(setup)
    async with setup.processor(lambda: handler, **LONG):
        await seconds(20)
        setup.publish(3)
        await seconds(1)
        begin_s = setup.now_s
    took_s = setup.now_s - begin_s
    async with setup.processor(lambda: handler):
        await seconds(20)

    assert took_s < 1
    assert setup.numbers() == [0, 1, 2]


async def test_a_hand_over_does_not_wait_for_a_batch():
    """The partition's events are handled by its new owner, each once."""
    setup = Setup(2)
    handlers = {owner: Calls(setup) for owner in ("a", "b")}
    async with setup.processor(lambda: handlers["a"], **LONG):
        await seconds(20)
        for partition_id in ("0", "1"):
            setup.publish(3, partition_id)
        await seconds(1)
        begin_s = setup.now_s
        async with setup.processor(lambda: handlers["b"], "b"):
            await seconds(30)
            owners = set(setup.owners().values())
    closed_s = [s for s, why in handlers["a"].closed if why is CloseReason.HANDED_OVER]
    calls = handlers["b"].calls

    assert owners == {"a", "b"}
    assert (closed_s[0] - begin_s) < 15
    assert [count for _, count in calls] == [3]
    assert len(setup.handled) == len(set(setup.handled))


def test_a_pause_does_not_wait_and_loses_no_event():
    """After it, they are received again."""
    acts = [
        (20, publishing(3)),
        (21, lambda _, processor: processor.pause("0")),
        (30, lambda _, processor: processor.resume("0")),
        (31, publishing(7)),
    ]
    setup, handler, _ = result_of(acts, **LONG)

    assert handler.calls == [(31.0, 10)]
    assert setup.numbers() == list(range(10))


def test_a_link_that_breaks_ends_the_wait():
    """What was received is handled; a link that breaks often must not keep it for ever."""
    acts = [(20, publishing(3)), (22, lambda setup, _: setup.hub.break_links())]
    setup, handler, processor = result_of([*acts, (30, publishing(10))], **LONG)

    assert [count for _, count in handler.calls] == [3, 10]
    assert handler.calls[0][0] == 22.0
    assert setup.numbers() == list(range(13))
    assert processor.statistics().counters.receiver_error_count == 1


def test_a_displaced_link_delivers_nothing_of_its_batch():
    """The new receiver gets the same events; this owner still owns, and reads them again."""
    acts = [
        (20, publishing(3)),
        (22, lambda setup, _: setup.hub.displace("0", group="$Default")),
        (30, publishing(7)),
    ]
    setup, handler, _ = result_of(acts, **LONG)

    assert handler.calls == [(30.0, 10)]
    assert setup.numbers() == list(range(10))


def test_a_rate_limit_below_batch_min_bounds_the_batch():
    """A call never waits for more than it may have."""
    _, handler, _ = result_of([(20, publishing(4))], **LONG, rate_max=2.0)

    assert handler.calls
    assert handler.calls[0][0] < 25
    assert sum(count for _, count in handler.calls) == 4


def test_a_batch_that_waits_is_no_stall():
    """Although the hub has events that are not handled."""
    acts = [(20, publishing(3))]
    _, handler, processor = result_of(acts, **LONG, stall_timeout=timedelta(seconds=10))

    assert handler.calls == [(80.0, 3)]
    assert processor.statistics().counters.stall_count == 0


async def test_a_batch_does_not_keep_the_loop_busy():
    """Its wait is one timer, however long it is: virtual time would show a loop that polls."""
    waits = []
    setup = Setup()
    processor = setup.processor(lambda: Calls(setup), **LONG)
    async with processor:
        await seconds(20)
        receive = type(source_of(processor)._receivers[0]).receive

        async def counted(self, **arguments):
            waits.append(arguments)
            return await receive(self, **arguments)

        receiver = source_of(processor)._receivers[0]
        receiver.receive = counted.__get__(receiver)
        setup.publish(3)
        await seconds(70)

    assert len(waits) <= 3


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"batch_min": 10}, "batch_wait is not given"),
        ({**TEN, "batch_size_max": 9}, "batch_min is 10 and batch_size_max is 9"),
        ({**TEN, "key_concurrency": 2}, "a lane takes the events of one key"),
        ({"batch_min": 0, "batch_wait": timedelta(seconds=1)}, "batch_min"),
        ({"batch_wait": timedelta(0)}, "batch_wait"),
    ],
)
def test_settings_of_batches_that_cannot_work_are_refused(settings, words):
    """The message says why."""
    with pytest.raises(ConfigurationError, match=words):
        EventProcessorConfig(**settings)
