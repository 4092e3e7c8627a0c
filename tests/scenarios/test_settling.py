"""A source whose service keeps the position: what is settled, when, and what comes again."""

import asyncio
from datetime import timedelta
from functools import partial

import pytest

from eventproc import (
    CheckpointPolicy,
    ConfigurationError,
    EventPosition,
    EventProcessor,
    FailureAction,
    FailurePolicy,
    PartitionHandler,
)
from eventproc.dead_letters import MemoryDeadLetterSink
from eventproc.models import SequenceRange
from tests.scenarios.group_setup import seconds
from tests.scenarios.queue_setup import QueueSetup

MANUAL = CheckpointPolicy.manual()


async def test_a_message_is_settled_after_its_checkpoint():
    """Not before: if the process dies in between, the message comes again."""
    setup = QueueSetup()
    async with setup.member(checkpoint_policy=CheckpointPolicy(interval=timedelta(seconds=5))):
        await seconds(2)
        setup.queue.put(1, 2, 3)
        await seconds(1)
        before = list(setup.queue.settled), len(setup.done)
        await seconds(6)
        found = (before, setup.queue.settled, setup.stored_state)

    assert found == (([], 3), [1, 2, 3], b"3")


@pytest.mark.parametrize(
    "policy",
    [CheckpointPolicy(max_events=None), CheckpointPolicy(max_events=1000, interval=None)],
    ids=["by interval", "by count"],
)
@pytest.mark.parametrize("lanes", [1, 3])
async def test_a_checkpoint_is_written_before_the_source_waits_for_it(policy, lanes):
    """At half of what it sends ahead, so a policy for long intervals slows nothing down."""
    setup = QueueSetup()
    setup.queue.put(*range(100))
    async with setup.member(checkpoint_policy=policy, key_concurrency=lanes):
        await seconds(20)
        handled, settled = len(setup.done), len(setup.queue.settled)

    assert handled == 100
    assert settled >= 90


async def test_a_stop_settles_what_was_handled():
    """The last checkpoint is written first; then the next owner gets the rest, nothing twice."""
    setup = QueueSetup(prefetch=50)
    setup.queue.put(*range(30))
    first = setup.member("a", 0.5, checkpoint_policy=MANUAL, batch_size_max=1)
    await first.start()
    await seconds(6)
    await first.stop()
    handled = len(setup.done)
    async with setup.member("b"):
        await seconds(60)

    assert 0 < handled < 30
    assert [message for _, message in setup.done] == list(range(30))
    assert setup.queue.settled == list(range(30))
    assert setup.stored_state == b"30"


async def test_a_hand_over_settles_what_was_handled():
    """Of two queues one moves to the processor that joins, and no message is handled twice."""
    setup = QueueSetup(count=2)
    for queue in setup.queues.values():
        queue.put(*range(40))
    first = setup.member("a", 0.5, batch_size_max=1)
    second = setup.member("b", 0.5, batch_size_max=1)
    async with first:
        await seconds(8)
        async with second:
            await seconds(60)

    assert {owner_id for owner_id, _ in setup.done} == {"a", "b"}
    assert sorted(message for _, message in setup.done) == sorted([*range(40), *range(40)])


async def test_after_a_lost_connection_only_what_was_not_settled_comes_again():
    """In its former order, with new sequence numbers."""
    setup = QueueSetup()
    policy = CheckpointPolicy(max_events=2)
    first = setup.member("a", 1, checkpoint_policy=policy, batch_size_max=1)
    await first.start()
    setup.queue.put(*range(8))
    await seconds(6)
    settled = len(setup.queue.settled)
    for link in list(setup.queue.links):
        link.break_off()
    setup.queues["0"].put(8)
    before = [message for _, message in setup.done]
    await seconds(40)
    after = [message for _, message in setup.done][len(before) :]
    await first.stop()

    assert 0 < settled <= len(before)
    assert after[-(9 - settled) :] == list(range(settled, 9))
    assert set(before) | set(after) == set(range(9))


async def test_a_paused_queue_settles_what_is_stored_meanwhile():
    """Its messages come in order after the pause, and none of those comes again."""
    setup = QueueSetup()
    setup.queue.put(*range(4))
    policy = CheckpointPolicy(interval=timedelta(seconds=3))
    async with setup.member(checkpoint_policy=policy) as processor:
        await seconds(1.5)
        assert setup.queue.settled == []
        processor.pause("0")
        setup.queue.put(4, 5)
        await seconds(10)
        during = list(setup.queue.settled), [message for _, message in setup.done]
        processor.resume("0")
        await seconds(10)
        handled = [message for _, message in setup.done]

        setup.queue.put(6, 7)
        await seconds(10)
        afterwards = [message for _, message in setup.done[6:]]

    assert during == ([0, 1, 2, 3], [0, 1, 2, 3])
    assert (handled, afterwards) == (list(range(6)), [6, 7])


@pytest.mark.parametrize(
    "settings",
    [
        {"initial_position": EventPosition.latest()},
        {"initial_positions": {"0": EventPosition.from_sequence_number(3)}},
    ],
)
def test_a_position_to_begin_at_is_refused(settings):
    """The service keeps it: the first message is the first one that was not settled."""
    setup = QueueSetup()

    with pytest.raises(ConfigurationError, match="initial_position"):
        setup.member(**settings)


class OneKeySlow(PartitionHandler):
    """Needs long for message 0, and no time for all others."""

    def __init__(self, setup: QueueSetup) -> None:
        self.setup = setup

    async def process_events(self, context, events):
        """Handle one event after the other."""
        for event in events:
            if event.body == b"0":
                await asyncio.sleep(1000)
            self.setup.done.append(("", int(event.body)))


def each_alone(event):
    """A key for each message."""
    return event.body


OFTEN = CheckpointPolicy(interval=timedelta(seconds=1))


def lanes(setup: QueueSetup, owner_id: str) -> EventProcessor:
    """A processor with two key lanes, one of which message 0 occupies for long."""
    return setup.member(
        owner_id,
        handler=lambda: OneKeySlow(setup),
        key_concurrency=2,
        key_selector=each_alone,
        checkpoint_policy=OFTEN,
        shutdown_timeout=timedelta(seconds=5),
    )


async def test_messages_done_above_a_slow_one_are_settled_one_by_one():
    """So they take no room of what the broker sends ahead, and the slow one delays no other."""
    setup = QueueSetup(prefetch=10)
    setup.queue.put(*range(50))
    async with lanes(setup, "a"):
        await seconds(60)
        handled, settled, stored = sorted(setup.messages), sorted(setup.queue.settled), setup.stored

    assert handled == settled == list(range(1, 50))
    assert (stored.sequence_number, stored.completed) == (-1, (SequenceRange(1, 49),))


async def test_after_a_stop_the_next_owner_gets_only_what_was_not_done():
    """The numbers in the former owner's completed ranges are given to no other messages."""
    setup = QueueSetup(prefetch=10)
    setup.queue.put(*range(8))
    first = lanes(setup, "a")
    await first.start()
    await seconds(20)
    await first.stop()
    before = list(setup.messages)
    setup.queue.put(*range(8, 12))
    async with setup.member("b"):
        await seconds(60)

    assert before == list(range(1, 8))
    assert setup.messages[len(before) :] == [0, 8, 9, 10, 11]
    assert setup.stored.sequence_number == 12


async def test_after_a_lost_connection_no_message_is_taken_for_one_that_was_done():
    """The broker has fewer messages than before, so the numbers of before would be others'."""
    setup = QueueSetup(prefetch=10)
    setup.queue.put(*range(8))
    async with lanes(setup, "a"):
        await seconds(20)
        assert sorted(setup.queue.settled) == list(range(1, 8))
        setup.queue.links[0].break_off()
        setup.queue.put(*range(8, 12))
        await seconds(40)
        found = sorted(setup.messages)

    assert found == list(range(1, 12))


@pytest.mark.parametrize("lost_s", [0, 0.02])
async def test_a_death_before_the_broker_knows_what_is_stored_loses_nothing(lost_s):
    """What was stored and not settled comes again, with the numbers of completed messages."""
    setup = QueueSetup(prefetch=10)
    setup.queue.put(*range(8))
    first = lanes(setup, "a")
    await first.start()
    while not setup.stored_ranges:
        await seconds(0.001)
    await seconds(lost_s)
    assert setup.queue.settled == []
    await setup.die(first)
    setup.queue.put(*range(8, 12))
    before = len(setup.messages)
    async with setup.member("b"):
        await seconds(60)

    assert setup.messages[before:] == list(range(12))


class Dying(PartitionHandler):
    """Its process dies at one message."""

    def __init__(self, setup: QueueSetup, died: asyncio.Event, poison: int) -> None:
        self.setup = setup
        self.died = died
        self.poison = poison

    async def process_events(self, context, events):
        """Die, or record the events."""
        for event in events:
            if int(event.body) == self.poison:
                self.died.set()
                await asyncio.sleep(1e9)
            self.setup.done.append(("", int(event.body)))


@pytest.mark.parametrize("poison", [0, 7, 20])
@pytest.mark.parametrize("lane_count", [1, 3])
async def test_a_message_of_which_processes_die_is_given_up_and_no_other(poison, lane_count):
    """A process dies before the broker knows what it settled last; the next one blames the right
    message all the same, because each message delivered alone waits for that."""
    setup = QueueSetup(prefetch=10)
    setup.queue.put(*range(30))
    sink = MemoryDeadLetterSink()
    policy = FailurePolicy(deliveries_max=3, action=FailureAction.DEAD_LETTER)
    deaths = 0
    while deaths < 10:
        died = asyncio.Event()
        processor = setup.member(
            f"p{deaths}",
            handler=partial(Dying, setup, died, poison),
            sink=sink,
            failure_policy=policy,
            key_concurrency=lane_count,
            checkpoint_policy=CheckpointPolicy(max_events=1),
        )
        await processor.start()
        try:
            async with asyncio.timeout(100):
                await died.wait()
        except TimeoutError:
            await processor.stop()
            break
        deaths += 1
        await setup.die(processor)

    assert [int(letter.event.body) for letter in sink.letters] == [poison]
    assert set(setup.messages) == set(range(30)) - {poison}
    assert sorted(setup.queue.settled) == list(range(30))
    assert deaths == 4


@pytest.mark.parametrize(
    ("stall_timeout", "is_told"),
    [(timedelta(minutes=5), False), (timedelta(minutes=30), True), (None, True)],
)
async def test_a_service_that_takes_messages_back_before_a_stall_is_noticed_is_told_at_the_start(
    caplog, stall_timeout, is_told
):
    """The message would come again while its call still runs, without a word before."""
    async with QueueSetup().member(stall_timeout=stall_timeout):
        pass

    told = [r for r in caplog.records if "acknowledgement_timeout_short" in r.getMessage()]

    assert len(told) == is_told
