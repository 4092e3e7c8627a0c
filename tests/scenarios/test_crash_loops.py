"""Events at which the process dies are isolated, counted in the checkpoint, and given up.

A process that dies here is one whose store and source are cut off at once, without any further
write. Real processes die in ``tests/integration/delivery``.
"""

import asyncio
from datetime import timedelta

import pytest

from eventproc import Checkpoint, CheckpointPolicy, EventPosition, FailureAction, FailurePolicy
from eventproc.dead_letters import MemoryDeadLetterSink
from eventproc.models import IN_BATCH, IN_PART, NOT_BEGUN, alone
from tests.scenarios.group_setup import Noting, Setup, seconds

LETTER = FailurePolicy(deliveries_max=5, action=FailureAction.DEAD_LETTER)
STOP = FailurePolicy(deliveries_max=5)
DEATHS_MAX = 20
SELDOM = CheckpointPolicy(max_events=1000, interval=timedelta(hours=1))


class DyingHandler(Noting):
    """Its process dies at one event; batches before it are handled."""

    def __init__(self, setup: Setup, died: asyncio.Event, poison: int | None = 7) -> None:
        super().__init__(setup)
        self.died = died
        self.poison = poison
        self.sizes: list[int] = []

    async def process_events(self, context, events):
        """Die or record the events."""
        self.sizes.append(len(events))
        for event in events:
            if event.sequence_number == self.poison:
                self.died.set()
                await asyncio.sleep(1e9)
            self.setup.handled.append((context.partition_id, event.sequence_number))


class CountingCheckpoints(dict[str, Checkpoint]):
    """The store's checkpoints, and the number of writes."""

    write_count = 0

    def __setitem__(self, partition_id: str, checkpoint: Checkpoint) -> None:
        super().__setitem__(partition_id, checkpoint)
        self.write_count += 1


class ProcessSequence:
    """One process after another, each with the same partition."""

    def __init__(self, setup: Setup, make: type[DyingHandler] = DyingHandler, **settings) -> None:
        self.setup = setup
        self.make = make
        self.settings = {"checkpoint_policy": SELDOM, **settings}
        self.handlers: list[DyingHandler] = []
        self.stopping: list[asyncio.Task[None]] = []

    async def run_next(self, *, for_s: float, poison: int | None = 7) -> bool:
        """Run a process until it dies, or for some time; return whether it died."""
        died = asyncio.Event()
        handler = self.make(self.setup, died, poison)
        self.handlers.append(handler)
        name = f"p{len(self.handlers)}"
        processor = self.setup.processor(lambda: handler, name, **self.settings)
        await processor.start()
        try:
            async with asyncio.timeout(for_s):
                await died.wait()
        except TimeoutError:
            await processor.stop()
            return False
        self.setup.store_by_owner[name].is_out = True
        self.setup.hub.break_links()
        self.stopping.append(asyncio.create_task(processor.stop()))
        await seconds(100)  # Its lease expires.
        return True

    def progress(self):
        """Position and isolation of the stored checkpoint."""
        checkpoint = self.setup.checkpoint()
        return checkpoint and (checkpoint.sequence_number, checkpoint.isolation)


@pytest.mark.parametrize("settings", [{}, {"key_concurrency": 3}], ids=["in order", "lanes"])
async def test_a_poison_event_is_isolated_and_given_up(settings):
    """Delivered in a batch, in a part, then alone; the seventh process does not deliver it."""
    setup = Setup()
    setup.publish(20)
    sink = MemoryDeadLetterSink()
    processes = ProcessSequence(setup, sink=sink, failure_policy=LETTER, **settings)
    found = []
    while await processes.run_next(for_s=300):
        found.append(processes.progress())
        assert len(found) < DEATHS_MAX, "no end of deaths"
    (letter,) = sink.letters

    assert found == [(-1, IN_BATCH), (-1, IN_PART), *((6, alone(n)) for n in range(1, 5))]
    assert processes.handlers[2].sizes == [1] * 8
    assert letter.event.sequence_number == 7
    assert (letter.attempt_count, letter.error_type) == (5, "")
    assert set(setup.numbers()) == set(range(20)) - {7}
    assert setup.checkpointed() == 19
    assert setup.checkpoint().isolation == NOT_BEGUN


async def test_a_poison_event_far_from_the_checkpoint_is_isolated_soon():
    """If checkpoints depend on time alone, any number of events may lie between the two."""
    setup = Setup()
    setup.publish(1500)
    sink = MemoryDeadLetterSink()
    seldom = CheckpointPolicy(max_events=None, interval=timedelta(hours=1))
    processes = ProcessSequence(
        setup, sink=sink, failure_policy=LETTER, checkpoint_policy=seldom, batch_size_max=10
    )
    found = []
    while await processes.run_next(for_s=300, poison=1405):
        found.append(processes.progress())

    assert found[0] == (-1, IN_BATCH)
    assert 1405 - 37 <= found[1][0] <= 1404
    assert found[1][1] == IN_PART
    assert found[2:] == [(1404, alone(count)) for count in range(1, 5)]
    assert [letter.event.sequence_number for letter in sink.letters] == [1405]
    assert set(setup.numbers()) == set(range(1500)) - {1405}


async def test_a_process_that_delivered_nothing_keeps_the_isolation():
    """It has learnt nothing about the event."""
    setup = Setup()
    setup.publish(3)
    processes = ProcessSequence(setup, failure_policy=STOP)
    await processes.run_next(for_s=30, poison=0)
    await processes.run_next(for_s=30, poison=0)
    before = processes.progress()
    setup.hub.stall("0")
    async with setup.processor(None, "b", failure_policy=STOP):
        await seconds(30)

    assert before == processes.progress() == (-1, IN_PART)
    assert setup.numbers() == []


async def test_a_poison_event_may_stop_its_partition():
    """No further process dies of it, until an operator resumes the partition."""
    setup = Setup()
    setup.publish(20)
    processes = ProcessSequence(setup, failure_policy=STOP)
    deaths = 0
    while await processes.run_next(for_s=300):
        deaths += 1
        assert deaths < DEATHS_MAX, "no end of deaths"
    stopped_at, count = processes.progress()
    alive = DyingHandler(setup, asyncio.Event(), poison=None)
    async with setup.processor(lambda: alive, "last", failure_policy=STOP) as processor:
        await seconds(30)
        stopped = processor.statistics().stopped
        processor.resume("0")
        await seconds(30)

    assert (deaths, stopped_at, count, stopped) == (6, 6, alone(4), ("0",))
    assert setup.checkpointed() == 19
    assert setup.checkpoint().isolation == NOT_BEGUN


async def test_an_orderly_end_resets_the_isolation():
    """The process did not die, even if no event was handled."""
    setup = Setup()
    setup.publish(3)

    class Slow(Noting):
        async def process_events(self, context, events):
            await asyncio.sleep(1e9)

    stored = []
    for owner_id in ("a", "b"):
        async with setup.processor(lambda: Slow(setup), owner_id, failure_policy=STOP):
            await seconds(20)
            stored.append(setup.checkpoint())
        stored.append(setup.checkpoint())

    assert [checkpoint and checkpoint.isolation for checkpoint in stored] == [
        IN_BATCH,
        NOT_BEGUN,
        IN_BATCH,
        NOT_BEGUN,
    ]


async def test_deaths_without_a_delivery_are_not_counted():
    """Only deliveries count."""
    setup = Setup()
    setup.publish(3)
    processes = ProcessSequence(setup, failure_policy=STOP)
    await processes.run_next(for_s=30)
    for number in range(10):  # Cut off, without an event to handle.
        processor = setup.processor(None, f"idle{number}", failure_policy=STOP)
        await processor.start()
        await seconds(15)
        setup.store_by_owner[f"idle{number}"].is_out = True
        setup.hub.break_links()
        processes.stopping.append(asyncio.create_task(processor.stop()))
        await seconds(100)
    setup.publish(3)
    await processes.run_next(for_s=30, poison=None)

    assert (processes.progress(), setup.numbers()) == ((5, NOT_BEGUN), [0, 1, 2, 3, 4, 5])


async def test_without_deliveries_max_nothing_is_counted():
    """Before the first event is handled, the checkpoint only says where reading began."""
    setup = Setup()
    setup.publish(20)
    processes = ProcessSequence(setup)
    await processes.run_next(for_s=60)

    assert processes.progress() == (-1, NOT_BEGUN)


@pytest.mark.parametrize(
    "position", [EventPosition.latest(), EventPosition.earliest()], ids=["latest", "earliest"]
)
async def test_deliveries_of_the_first_event_are_counted(position):
    """Also if there was no checkpoint before."""
    setup = Setup()
    sink = MemoryDeadLetterSink()
    processes = ProcessSequence(setup, sink=sink, failure_policy=LETTER, initial_position=position)
    begun = asyncio.create_task(processes.run_next(for_s=300, poison=0))
    await seconds(10)
    setup.publish(3)
    await begun
    found = [processes.progress()]
    while await processes.run_next(for_s=300, poison=0):
        found.append(processes.progress())
        assert len(found) < DEATHS_MAX, "no end of deaths"

    assert found == [(-1, IN_BATCH), (-1, IN_PART), *((-1, alone(n)) for n in range(1, 5))]
    assert [letter.event.sequence_number for letter in sink.letters] == [0]
    assert setup.numbers() == [1, 2]


class Checkpointing(DyingHandler):
    """Checkpoints after some events of a batch, others in each process."""

    async def process_events(self, context, events):
        """Checkpoint at a third of the batch, then continue."""
        last = events[max(0, len(events) // 3 - 1)].sequence_number
        for event in events:
            await super().process_events(context, [event])
            if event.sequence_number == last:
                await context.checkpoint(event)


@pytest.mark.parametrize("settings", [{}, {"key_concurrency": 3}], ids=["in order", "lanes"])
async def test_checkpoints_of_the_handler_do_not_hide_deaths(settings):
    """A death after the position has moved is counted, too."""
    setup = Setup()
    setup.publish(300)
    sink = MemoryDeadLetterSink()
    processes = ProcessSequence(
        setup,
        sink=sink,
        failure_policy=LETTER,
        make=Checkpointing,
        checkpoint_policy=CheckpointPolicy.manual(),
        **settings,
    )
    deaths = 0
    while await processes.run_next(for_s=300, poison=200):
        deaths += 1
        assert deaths < DEATHS_MAX, "no end of deaths"

    assert [letter.event.sequence_number for letter in sink.letters] == [200]
    assert deaths == 6
    assert set(setup.numbers()) == set(range(300)) - {200}


@pytest.mark.parametrize("batch_size_max", [1, 300])
async def test_after_a_crash_few_checkpoints_are_written(batch_size_max):
    """Not one for each event: the crash may have had any reason."""
    setup = Setup()
    setup.publish(970)
    stored = setup.account.records(setup.group).checkpoint_by_partition = CountingCheckpoints()
    processes = ProcessSequence(setup, failure_policy=STOP, batch_size_max=batch_size_max)
    await processes.run_next(for_s=300, poison=0)
    before = stored.write_count
    await processes.run_next(for_s=300, poison=None)

    assert setup.numbers() == list(range(970))
    assert processes.progress() == (969, NOT_BEGUN)
    assert (stored.write_count - before) <= 40


async def test_an_orderly_end_before_the_poison_event_keeps_the_isolation():
    """Members come and go after a crash, and the next owner must not start from the beginning."""
    setup = Setup()
    setup.publish(300)
    sink = MemoryDeadLetterSink()
    processes = ProcessSequence(setup, sink=sink, failure_policy=LETTER)
    await processes.run_next(for_s=300, poison=250)

    class Slow(Noting):
        async def process_events(self, context, events):
            await asyncio.sleep(len(events))
            await super().process_events(context, events)

    async with setup.processor(lambda: Slow(setup), "slow", failure_policy=LETTER, sink=sink):
        await seconds(100)
    between = processes.progress()
    deaths = 1
    while await processes.run_next(for_s=300, poison=250):
        deaths += 1

    assert between[0] > 30
    assert between[1] == IN_BATCH
    assert (deaths, [letter.event.sequence_number for letter in sink.letters]) == (6, [250])
