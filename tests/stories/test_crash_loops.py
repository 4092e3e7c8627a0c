"""Events of which the process dies: found one by one, counted in the checkpoint, and given up.

A process that dies here is one whose store and source are cut off at once, so nothing of it is
heard again. Real processes die in ``tests/integration/delivery``.
"""

import asyncio
from datetime import timedelta

import pytest

from eventproc import Checkpoint, CheckpointPolicy, EventPosition, FailureAction, FailurePolicy
from eventproc.dead_letters import MemoryDeadLetterSink
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Noting, Scene, seconds

LETTER = FailurePolicy(deliveries_max=5, action=FailureAction.DEAD_LETTER)
STOP = FailurePolicy(deliveries_max=5)
MANY = 20
SELDOM = CheckpointPolicy(max_events=1000, interval=timedelta(hours=1))


class Deadly(Noting):
    """Its process dies of one event; until then it takes batches."""

    def __init__(self, scene: Scene, died: asyncio.Event, poison: int | None = 7) -> None:
        super().__init__(scene)
        self.died = died
        self.poison = poison
        self.sizes: list[int] = []

    async def process_events(self, context, events):
        """Die, or note."""
        self.sizes.append(len(events))
        for event in events:
            if event.sequence_number == self.poison:
                self.died.set()
                await asyncio.sleep(1e9)
            self.scene.handled.append((context.partition_id, event.sequence_number))


class Counted(dict[str, Checkpoint]):
    """The store's checkpoints, and how often one was written."""

    write_count = 0

    def __setitem__(self, partition_id: str, checkpoint: Checkpoint) -> None:
        super().__setitem__(partition_id, checkpoint)
        self.write_count += 1


class Life:
    """One process after another, each with the same partition."""

    def __init__(self, scene: Scene, make: type[Deadly] = Deadly, **settings) -> None:
        self.scene = scene
        self.make = make
        self.settings = {"checkpoint_policy": SELDOM, **settings}
        self.handlers: list[Deadly] = []
        self.dead: list[asyncio.Task[None]] = []

    async def live(self, *, for_s: float, poison: int | None = 7) -> bool:
        """Run one until it dies, or for some time; return whether it died."""
        died = asyncio.Event()
        handler = self.make(self.scene, died, poison)
        self.handlers.append(handler)
        name = f"p{len(self.handlers)}"
        processor = self.scene.processor(lambda: handler, name, **self.settings)
        await processor.start()
        try:
            async with asyncio.timeout(for_s):
                await died.wait()
        except TimeoutError:
            await processor.stop()
            return False
        self.scene.store_by_owner[name].is_out = True
        self.scene.hub.break_links()
        self.dead.append(asyncio.create_task(processor.stop()))
        await seconds(100)  # Its lease expires.
        return True

    def counts(self):
        """What the checkpoint says of deliveries."""
        checkpoint = self.scene.checkpoint()
        return checkpoint and (checkpoint.sequence_number, checkpoint.delivery_count)


@pytest.mark.parametrize("settings", [{}, {"key_concurrency": 3}], ids=["in order", "lanes"])
def test_a_deadly_event_is_found_and_given_up(settings):
    """Delivered among many, in a part, then alone; the seventh process does not touch it."""

    async def story():
        scene = Scene()
        scene.publish(20)
        sink = MemoryDeadLetterSink()
        life = Life(scene, sink=sink, failure_policy=LETTER, **settings)
        counts = []
        while await life.live(for_s=300):
            counts.append(life.counts())
            assert len(counts) < MANY, "they die for ever"
        return scene, life, counts, sink.letters

    scene, life, counts, (letter,) = run_virtual(story())

    assert counts == [(-1, 1), (-1, 2), (6, 3), (6, 4), (6, 5), (6, 6)]
    assert life.handlers[2].sizes == [1] * 8
    assert letter.event.sequence_number == 7
    assert (letter.attempt_count, letter.error_type) == (5, "")
    assert set(scene.numbers()) == set(range(20)) - {7}
    assert scene.checkpointed() == 19
    assert scene.checkpoint().delivery_count == 0


def test_a_deadly_event_far_from_the_checkpoint_is_come_upon_soon():
    """Where only time says when to write, any number of events may lie between the two."""

    async def story():
        scene = Scene()
        scene.publish(1500)
        sink = MemoryDeadLetterSink()
        seldom = CheckpointPolicy(max_events=None, interval=timedelta(hours=1))
        life = Life(
            scene, sink=sink, failure_policy=LETTER, checkpoint_policy=seldom, batch_size_max=10
        )
        counts = []
        while await life.live(for_s=300, poison=1405):
            counts.append(life.counts())
        return scene, counts, [letter.event.sequence_number for letter in sink.letters]

    scene, counts, letters = run_virtual(story())

    assert counts[0] == (-1, 1)
    assert 1405 - 37 <= counts[1][0] <= 1404
    assert counts[1][1] == 2
    assert counts[2:] == [(1404, count) for count in range(3, 7)]
    assert letters == [1405]
    assert set(scene.numbers()) == set(range(1500)) - {1405}


def test_who_closes_before_anything_was_handed_over_leaves_the_count():
    """Nothing is known of the event by that."""

    async def story():
        scene = Scene()
        scene.publish(3)
        life = Life(scene, failure_policy=STOP)
        await life.live(for_s=30, poison=0)
        await life.live(for_s=30, poison=0)
        before = life.counts()
        scene.hub.stall("0")
        async with scene.processor(None, "b", failure_policy=STOP):
            await seconds(30)
        return before, life.counts(), scene.numbers()

    before, after, numbers = run_virtual(story())

    assert before == after == (-1, 2)
    assert numbers == []


def test_a_deadly_event_may_stop_its_partition():
    """Then no further process dies of it, until somebody says to try again."""

    async def story():
        scene = Scene()
        scene.publish(20)
        life = Life(scene, failure_policy=STOP)
        deaths = 0
        while await life.live(for_s=300):
            deaths += 1
            assert deaths < MANY, "they die for ever"
        stopped_at, count = life.counts()
        alive = Deadly(scene, asyncio.Event(), poison=None)
        async with scene.processor(lambda: alive, "last", failure_policy=STOP) as processor:
            await seconds(30)
            stopped = processor.statistics().stopped
            processor.resume("0")
            await seconds(30)
        return deaths, stopped_at, count, stopped, scene

    deaths, stopped_at, count, stopped, scene = run_virtual(story())

    assert (deaths, stopped_at, count, stopped) == (6, 6, 6, ("0",))
    assert scene.checkpointed() == 19
    assert scene.checkpoint().delivery_count == 0


def test_a_good_end_starts_the_count_anew():
    """Whoever closed in good order did not die of anything, though nothing got done."""

    async def story():
        scene = Scene()
        scene.publish(3)

        class Slow(Noting):
            async def process_events(self, context, events):
                await asyncio.sleep(1e9)

        stored = []
        for owner_id in ("a", "b"):
            async with scene.processor(lambda: Slow(scene), owner_id, failure_policy=STOP):
                await seconds(20)
                stored.append(scene.checkpoint())
            stored.append(scene.checkpoint())
        return [checkpoint and checkpoint.delivery_count for checkpoint in stored]

    assert run_virtual(story()) == [1, 0, 1, 0]


def test_processes_that_die_while_nothing_comes_accuse_nobody():
    """Only what was handed over counts."""

    async def story():
        scene = Scene()
        scene.publish(3)
        life = Life(scene, failure_policy=STOP)
        await life.live(for_s=30)
        for number in range(10):  # Cut off, without an event to handle.
            processor = scene.processor(None, f"idle{number}", failure_policy=STOP)
            await processor.start()
            await seconds(15)
            scene.store_by_owner[f"idle{number}"].is_out = True
            scene.hub.break_links()
            life.dead.append(asyncio.create_task(processor.stop()))
            await seconds(100)
        scene.publish(3)
        await life.live(for_s=30, poison=None)
        return life.counts(), scene.numbers()

    assert run_virtual(story()) == ((5, 0), [0, 1, 2, 3, 4, 5])


def test_nothing_is_counted_unless_asked_for():
    """Before the first event is handled the checkpoint says only where reading began."""

    async def story():
        scene = Scene()
        scene.publish(20)
        life = Life(scene)
        await life.live(for_s=60)
        return life.counts()

    assert run_virtual(story()) == (-1, 0)


@pytest.mark.parametrize(
    "position", [EventPosition.latest(), EventPosition.earliest()], ids=["latest", "earliest"]
)
def test_the_count_has_a_place_from_the_first_event_on(position):
    """Also where there was no checkpoint."""

    async def story():
        scene = Scene()
        sink = MemoryDeadLetterSink()
        life = Life(scene, sink=sink, failure_policy=LETTER, initial_position=position)
        begun = asyncio.create_task(life.live(for_s=300, poison=0))
        await seconds(10)
        scene.publish(3)
        await begun
        counts = [life.counts()]
        while await life.live(for_s=300, poison=0):
            counts.append(life.counts())
            assert len(counts) < MANY, "they die for ever"
        return counts, [letter.event.sequence_number for letter in sink.letters], scene.numbers()

    counts, letters, numbers = run_virtual(story())

    assert counts == [(-1, 1), (-1, 2), (-1, 3), (-1, 4), (-1, 5), (-1, 6)]
    assert letters == [0]
    assert numbers == [1, 2]


class Checkpointing(Deadly):
    """Asks for a checkpoint after some of the events, other ones in each life."""

    async def process_events(self, context, events):
        """Store progress at the first third of what there is, then go on."""
        last = events[max(0, len(events) // 3 - 1)].sequence_number
        for event in events:
            await super().process_events(context, [event])
            if event.sequence_number == last:
                await context.checkpoint(event)


@pytest.mark.parametrize("settings", [{}, {"key_concurrency": 3}], ids=["in order", "lanes"])
def test_the_handlers_own_checkpoints_hide_no_death(settings):
    """A process that moved the position on, and died then, has left its mark all the same."""

    async def story():
        scene = Scene()
        scene.publish(300)
        sink = MemoryDeadLetterSink()
        life = Life(
            scene,
            sink=sink,
            failure_policy=LETTER,
            make=Checkpointing,
            checkpoint_policy=CheckpointPolicy.manual(),
            **settings,
        )
        deaths = 0
        while await life.live(for_s=300, poison=200):
            deaths += 1
            assert deaths < MANY, "they die for ever"
        return deaths, [letter.event.sequence_number for letter in sink.letters], scene

    deaths, letters, scene = run_virtual(story())

    assert letters == [200]
    assert deaths == 6
    assert set(scene.numbers()) == set(range(300)) - {200}


@pytest.mark.parametrize("batch_size_max", [1, 300])
def test_after_a_crash_few_checkpoints_are_written(batch_size_max):
    """Not one for each event: the crash may have had any reason."""

    async def story():
        scene = Scene()
        scene.publish(970)
        stored = scene.account.records(scene.group).checkpoint_by_partition = Counted()
        life = Life(scene, failure_policy=STOP, batch_size_max=batch_size_max)
        await life.live(for_s=300, poison=0)
        before = stored.write_count
        await life.live(for_s=300, poison=None)
        return stored.write_count - before, scene.numbers(), life.counts()

    written, numbers, counts = run_virtual(story())

    assert numbers == list(range(970))
    assert counts == (969, 0)
    assert written <= 40


def test_an_end_in_good_order_before_the_culprit_came_by_leaves_the_care():
    """Members come and go after a crash: whoever gets the partition then must not begin anew."""

    async def story():
        scene = Scene()
        scene.publish(300)
        sink = MemoryDeadLetterSink()
        life = Life(scene, sink=sink, failure_policy=LETTER)
        await life.live(for_s=300, poison=250)

        class Slow(Noting):
            async def process_events(self, context, events):
                await asyncio.sleep(len(events))
                await super().process_events(context, events)

        async with scene.processor(lambda: Slow(scene), "slow", failure_policy=LETTER, sink=sink):
            await seconds(100)
        between = life.counts()
        deaths = 1
        while await life.live(for_s=300, poison=250):
            deaths += 1
        return between, deaths, [letter.event.sequence_number for letter in sink.letters]

    between, deaths, letters = run_virtual(story())

    assert between[0] > 30
    assert between[1] == 1
    assert (deaths, letters) == (6, [250])
