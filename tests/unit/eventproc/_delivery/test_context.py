"""What ``done`` does to progress: on the event loop, in a handler's thread, and in a key lane."""

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from math import inf
from threading import get_ident

import pytest

from eventproc import CheckpointPolicy, OwnershipLostError
from eventproc._base.logs import get_logger
from eventproc._core.delivery.progress import PartitionProgress
from eventproc._delivery.checkpointer import Checkpointer
from eventproc._delivery.context import LiveContext
from eventproc._delivery.flow_control import PauseSwitch
from eventproc._delivery.handler_threads import ThreadContext
from eventproc._delivery.scope import PartitionIdentity, PartitionScope
from eventproc._group.pumps.stop_scope import StopScope
from eventproc.errors import TransactionsRefusedError
from eventproc.models import LastEnqueued
from eventproc.models._statistics import DeliveryCounters
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup
from tests.unit.eventproc._core.events import event, events, numbers
from tests.unit.eventproc._delivery.checkpoint_fixture import CheckpointFixture
from tests.unit.eventproc._delivery.sqlite_fixture import GROUP, begun

pytestmark = pytest.mark.real_time  # with threads

EAGER = CheckpointPolicy(max_events=5, max_uncommitted_events=10)


def served(
    *,
    has_state: bool = True,
    pause_switch: PauseSwitch | None = None,
    last_enqueued: LastEnqueued | None = None,
) -> tuple[LiveContext, PartitionProgress, Checkpointer]:
    """The context of a partition that begins after event 0 and has received 1 to 10."""
    setup = Setup()
    checkpointer = CheckpointFixture(setup).checkpointer("a", EAGER)
    progress = checkpointer.progress
    progress.has_state = has_state
    progress.pin(0, "o0")
    progress.admit(events(range(1, 11)))
    context = LiveContext(
        PartitionScope(
            identity=PartitionIdentity(partition_id="0", group=setup.group, owner_id="a"),
            stop=StopScope(lambda: inf),
            counters=DeliveryCounters(),
            log=get_logger("eventproc.test"),
        ),
        checkpointer=checkpointer,
        pause_switch=pause_switch or PauseSwitch(),
        last_enqueued=lambda: last_enqueued,
    )
    return context, progress, checkpointer


async def test_done_counts_every_event_that_it_passes():
    """Towards ``max_uncommitted_events``, too."""
    context, _, checkpointer = served()
    context.begin_call(events(range(1, 11)))
    context.done(event(9))

    assert checkpointer.coverage.uncommitted.has_room
    context.done(event(10))
    assert not checkpointer.coverage.uncommitted.has_room


async def test_a_pause_by_a_handler_thread_begins_and_ends_on_the_event_loop():
    """The pump waits there, and other threads may not touch what it waits for."""
    called_in: list[int] = []
    switch = PauseSwitch(lambda: called_in.append(get_ident()))
    context, _, _ = served(pause_switch=switch)
    await asyncio.to_thread(context.pause)
    await asyncio.sleep(0)
    is_paused = switch.is_paused
    await asyncio.to_thread(context.resume)
    await asyncio.sleep(0)

    assert (is_paused, switch.is_paused, called_in) == (True, False, [get_ident()])


async def test_without_a_lag_there_is_none_in_seconds():
    """Although the time of the last handled event is not known after a restart."""
    newest = LastEnqueued(sequence_number=0, offset="o0", enqueued_time=None)
    context, _, _ = served(last_enqueued=newest)

    assert (context.lag, context.lag_seconds) == (0, 0.0)


async def test_the_context_of_a_lost_partition_is_ending_and_refuses_a_checkpoint():
    """Also if there is no progress to store: the partition has a new owner."""
    context, _, _ = served()
    was_ending = context.is_ending
    context._stop_scope.lose()

    assert (was_ending, context.is_ending) == (False, True)
    with pytest.raises(OwnershipLostError):
        await context.checkpoint()


async def test_a_call_without_events_has_none_that_is_not_handled():
    """Such as ``process_error`` after ``process_event`` has failed."""
    context, _, _ = served()
    context.begin_call(events([1, 2]))
    context.begin_event(event(2))
    context.end_call(None)
    context.begin_call()

    assert context.unhandled_range is None


async def test_an_event_of_another_partition_is_refused():
    """Each partition's events belong to its own context."""
    context, _, _ = served()

    with pytest.raises(ValueError, match="event 11 was not handed to the handler of partition '0'"):
        context.done(event(11))


async def test_a_processor_knows_of_no_replay():
    """A handler that leaves out replayed events would leave out all of them."""
    context, _, _ = served()

    assert not context.is_replay


async def test_a_thread_moves_the_position_at_once_and_the_loop_counts():
    """The events are counted once, in the event loop's thread."""
    context, progress, _ = served()
    seen: list[tuple[int, int]] = []
    counting = context.of_lane(lambda count: seen.append((get_ident(), count)))
    counting.begin_call(events(range(1, 11)))

    def work() -> int | None:
        counting.done(event(2))
        counting.done(event(4))
        return counting.sequence_number

    assert await asyncio.to_thread(work) == 4
    await asyncio.sleep(0)
    await asyncio.to_thread(counting.done, event(5))
    await asyncio.sleep(0)
    assert {thread_id for thread_id, _ in seen} == {get_ident()}
    assert sum(count for _, count in seen) == 5
    assert progress.window_size == 5


@pytest.mark.parametrize("has_state", [True, False])
def test_a_call_that_completes_events_is_not_stuck(has_state):
    """``busy_since_s`` is the time of its last ``done``."""

    async def scenario():
        context, _, _ = served(has_state=has_state)
        context.begin_call(events([1, 2]))
        began_s = context.busy_since_s
        await asyncio.sleep(5)
        context.done(event(1))
        done_s = context.busy_since_s
        context.end_call(None)
        return began_s, done_s, context.busy_since_s

    began_s, done_s, ended_s = run_virtual(scenario())

    assert (done_s, ended_s) == (began_s + 5, None)


def lane() -> tuple[LiveContext, Callable[[], list[int]]]:
    """The context of a key lane, and what is still to be handled."""
    context, progress, checkpointer = served(has_state=False)
    return (
        context.of_lane(checkpointer.note),
        lambda: numbers(progress.unhandled(events(range(1, 11)))),
    )


async def test_a_context_variable_that_a_lane_sets_is_its_own():
    """Such as the span of a trace: other lanes handle other events."""
    variable: ContextVar[str] = ContextVar("variable", default="unset")
    context, _, _ = served()
    one, other = (context.of_lane(lambda _: None) for _ in range(2))
    one.variables.run(variable.set, "of one lane")

    assert other.variables.run(variable.get) == "unset"


async def test_in_a_lane_done_concerns_the_events_of_its_call():
    """Events of other keys in between may be under way; ``process_error`` may say it, too."""
    context, unhandled = lane()
    context.begin_call(events([1, 4, 9]))
    context.end_call(None)
    context.begin_call()
    context.done(event(4))

    assert unhandled() == [2, 3, 5, 6, 7, 8, 9, 10]


async def test_in_a_lane_an_event_of_an_earlier_call_completes_nothing():
    """The events below it in this call have another key."""
    context, unhandled = lane()
    context.begin_call(events([2, 9]))
    context.end_call([events([2, 9])])
    context.begin_call(events([5]))
    context.done(event(9))

    assert 5 in unhandled()


async def test_in_a_lane_a_thread_leaves_the_events_to_the_loop():
    """They are done before the end of the call is seen."""
    context, progress, _ = served(has_state=False)
    seen: list[int] = []
    in_lane = context.of_lane(lambda _: seen.append(get_ident()))
    in_lane.begin_call(events([1, 4]))
    await asyncio.to_thread(in_lane.done, event(1))
    await asyncio.sleep(0)

    assert seen == [get_ident()]
    assert progress.sequence_number == 1


@asynccontextmanager
async def in_transactions(path, *, has_state=True, received=range(1, 6)):
    """A call with some events, whose handler has transactions of a SQLite file."""
    async with begun(path, has_state=has_state, received=received) as partition:
        scope = PartitionScope(
            identity=PartitionIdentity(partition_id="0", group=GROUP, owner_id="a"),
            stop=StopScope(lambda: inf),
            counters=DeliveryCounters(),
            log=get_logger("eventproc.test"),
        )
        context = LiveContext(
            scope,
            checkpointer=partition.checkpointer,
            pause_switch=PauseSwitch(),
            last_enqueued=lambda: None,
            commits=partition.commits,
        )
        context.begin_call(events(received))
        yield context, partition, scope.stop


@pytest.fixture(name="path")
def _path(tmp_path):
    return tmp_path / "store.db"


async def test_a_transaction_completes_the_events_of_its_call_up_to_the_one_that_it_names(path):
    """The next one completes the others."""
    async with in_transactions(path) as (context, partition, _):
        async with context.transaction(event(3)):
            pass
        first = await partition.stored()
        async with context.transaction():
            pass

        assert (first.sequence_number, (await partition.stored()).sequence_number) == (3, 5)


async def test_in_a_thread_the_end_of_the_block_commits(path):
    """As in a coroutine."""
    async with in_transactions(path) as (context, partition, _):
        view = ThreadContext(context, asyncio.get_running_loop(), lambda: False)

        def work():
            with view.transaction(event(3)):
                pass

        await asyncio.to_thread(work)

        assert (await partition.stored()).sequence_number == 3


async def test_in_process_event_a_transaction_completes_that_event_alone(path):
    """Although the call has more events."""
    async with in_transactions(path) as (context, partition, _):
        context.begin_event(event(1))
        async with context.transaction():
            pass

        assert (await partition.stored()).sequence_number == 1


@pytest.mark.parametrize("number", [2, 9])
async def test_a_transaction_of_an_event_of_another_call_is_refused(path, number):
    """With key lanes an event between those of the call has another key."""
    async with in_transactions(path, received=[1, 3, 5]) as (context, _, _):
        with pytest.raises(ValueError, match=f"event {number} is not one of this call"):
            await context.transaction(event(number)).__aenter__()


async def test_a_transaction_of_a_lost_partition_does_not_begin(path):
    """Its block would do work that is rolled back."""
    async with in_transactions(path) as (context, _, stop):
        stop.lose()
        with pytest.raises(OwnershipLostError):
            await context.transaction().__aenter__()


@pytest.mark.parametrize("what", ["done", "checkpoint", "transaction"])
async def test_the_block_of_a_transaction_refuses_what_its_end_does(path, what):
    """The position of ``done`` would be stored although the block is rolled back."""

    async def call(context):
        if what == "done":
            context.done(event(1))
        elif what == "checkpoint":
            await context.checkpoint(event(1))
        else:
            await context.transaction().__aenter__()

    async with in_transactions(path) as (context, partition, _):
        with pytest.raises(TransactionsRefusedError, match=rf"^{what}\(\) was called in the block"):
            async with context.transaction():
                await call(context)

        assert partition.progress.sequence_number == 0


async def test_a_block_that_outlives_its_call_leaves_the_state_alone(path):
    """A thread cannot be cancelled; by its end, the state may be that of the next call."""
    async with in_transactions(path) as (context, _, _):

        async def outlive():
            async with context.open_transaction(None, is_cancelled=lambda: True):
                context.state = b"of the next call"
                raise RuntimeError

        with pytest.raises(RuntimeError):
            await outlive()

        assert context.state == b"of the next call"


async def test_done_after_a_transaction_counts_no_event_twice(path):
    """In a key lane, where it completes events of the same call."""
    counts: list[int] = []
    async with in_transactions(path, has_state=False) as (context, partition, _):
        lane = context.of_lane(counts.append)
        lane.begin_call(events(range(1, 6)))
        async with lane.transaction(event(3)):
            pass
        lane.done(event(2))
        lane.done(event(5))
        await partition.checkpointer.flush()

        assert sum(counts) == 5
        assert (await partition.stored()).sequence_number == 5


async def test_a_call_that_commits_is_not_stuck(path):
    """``busy_since_s`` is the time of its last commit."""
    async with in_transactions(path) as (context, _, _):
        began_s = context.busy_since_s
        async with context.transaction():
            pass

        assert context.busy_since_s > began_s


async def test_a_commit_under_way_ends_although_its_call_is_cancelled(path):
    """Then its events are known to be done; the cancellation is raised after that."""
    async with in_transactions(path) as (context, partition, _):
        is_ending = asyncio.Event()

        async def call():
            async with context.transaction():
                is_ending.set()

        calling = asyncio.ensure_future(call())
        await is_ending.wait()
        while context._committing is None:  # noqa: ASYNC110 - it sets no event
            await asyncio.sleep(0)
        calling.cancel()
        await context.commit_ended()
        number = partition.progress.sequence_number
        await asyncio.wait([calling])

        assert calling.cancelled()
        assert number == 5 == (await partition.stored()).sequence_number


async def test_a_call_that_is_cancelled_during_its_commit_keeps_the_state_of_the_events(path):
    """They are done, so the next checkpoint stores the state that counts them."""
    async with in_transactions(path) as (context, partition, _):

        async def call():
            async with context.transaction():
                context.state = b"5"

        context.state = b"0"
        calling = asyncio.ensure_future(call())
        while context._committing is None:  # noqa: ASYNC110 - it sets no event
            await asyncio.sleep(0)
        calling.cancel()
        await asyncio.wait([calling])
        stored = await partition.stored()

        assert calling.cancelled()
        assert (stored.sequence_number, stored.state, context.state) == (5, b"5", b"5")
