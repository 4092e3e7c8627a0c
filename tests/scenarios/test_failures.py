"""Failures: which events count as failed, which are delivered again, and what giving up means."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from eventproc import (
    Backoff,
    BatchError,
    CheckpointPolicy,
    ConfigurationError,
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
    PartitionHandler,
)
from eventproc.dead_letters import FunctionDeadLetterSink, MemoryDeadLetterSink
from eventproc.errors import StoreUnavailableError
from eventproc.models import SequenceRange
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds

QUICK = Backoff(initial=timedelta(seconds=0.1), maximum=timedelta(seconds=1))
THREE_THEN_LETTER = FailurePolicy(attempts_max=3, action=FailureAction.DEAD_LETTER)
THREE_THEN_SKIP = FailurePolicy(attempts_max=3, action=FailureAction.SKIP)


class Poisoned(Noting):
    """Raises for some events; takes events one by one."""

    def __init__(self, setup: Setup, poison=frozenset({4})) -> None:
        super().__init__(setup)
        self.poison = poison
        self.attempts: Counter[int] = Counter()
        self.errors: list[Exception] = []

    process_events = PartitionHandler.process_events

    async def process_event(self, context, event):
        """Raise for a poison event."""
        self.attempts[event.sequence_number] += 1
        context.state = str(int(context.state or b"0") + 1).encode()
        if event.sequence_number in self.poison:
            raise ValueError(f"cannot read {event.sequence_number}")
        self.setup.handled.append((context.partition_id, event.sequence_number))

    async def process_error(self, context, error):
        """Record the error."""
        self.errors.append(error)


class PoisonedBatch(Poisoned):
    """Takes whole batches, and does not say which event failed."""

    async def process_events(self, context, events):
        """Raise at the poison event, half-way through."""
        for event in events:
            await self.process_event(context, event)


def served(handler_class, policy, *, sink=None, count=10, lanes=1, for_s=60.0):
    """Serve events of which some are poison; return setup, handlers and statistics."""

    async def scenario():
        setup = Setup()
        for number in range(count):
            setup.hub.publish(b"x", partition_id="0", partition_key=f"k{number % 3}")
        handlers = []

        def make():
            handlers.append(handler_class(setup))
            return handlers[-1]

        processor = setup.processor(
            make, sink=sink, failure_policy=policy, handler_backoff=QUICK, key_concurrency=lanes
        )
        async with processor:
            await seconds(for_s)
            statistics = processor.statistics()
        return setup, handlers, statistics

    return run_virtual(scenario())


@pytest.mark.parametrize("lanes", [1, 3])
def test_a_poison_event_is_dead_lettered_and_the_others_are_handled_once(lanes):
    """With its error and number of attempts. State counts the others only."""
    sink = MemoryDeadLetterSink()

    class Stateless(Poisoned):
        async def process_event(self, context, event):
            self.attempts[event.sequence_number] += 1
            if event.sequence_number in self.poison:
                raise ValueError(f"cannot read {event.sequence_number}")
            self.setup.handled.append((context.partition_id, event.sequence_number))

    handler_class = Poisoned if lanes == 1 else Stateless
    setup, (handler,), statistics = served(handler_class, THREE_THEN_LETTER, sink=sink, lanes=lanes)
    (letter,) = sink.letters

    assert sorted(setup.numbers()) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert handler.attempts == Counter({**dict.fromkeys(range(10), 1), 4: 3})
    assert [str(error) for error in handler.errors] == ["cannot read 4"] * 3
    assert letter.event.sequence_number == 4
    assert (letter.partition_id, letter.owner_id, letter.attempt_count) == ("0", "a", 3)
    assert (letter.error_type, letter.error_message) == ("ValueError", "cannot read 4")
    assert "process_event" in letter.traceback
    assert setup.checkpointed() == 9
    assert (statistics.counters.handled_count, statistics.counters.dead_lettered_count) == (9, 1)
    if lanes == 1:
        assert setup.checkpoint().state == b"9"


@pytest.mark.parametrize("lanes", [1, 20])
def test_one_poison_event_among_ten_thousand_is_given_up_alone(lanes):
    """All others are handled exactly once."""
    sink = MemoryDeadLetterSink()

    class OneBad(Poisoned):
        async def process_event(self, context, event):
            self.attempts[event.sequence_number] += 1
            if event.sequence_number == 5_000:
                raise ValueError

    setup, (handler,), statistics = served(
        OneBad, THREE_THEN_LETTER, sink=sink, count=10_000, lanes=lanes
    )

    assert handler.attempts == Counter({**dict.fromkeys(range(10_000), 1), 5_000: 3})
    assert [letter.event.sequence_number for letter in sink.letters] == [5_000]
    assert statistics.counters.handled_count == 9_999
    assert setup.checkpointed() == 9_999


def test_events_of_a_failed_batch_are_delivered_once_more_one_by_one():
    """If the handler does not name the failed event; so good ones are repeated once at most."""
    setup, (handler,), _ = served(PoisonedBatch, THREE_THEN_SKIP)

    assert handler.attempts[4] == 4  # Once in the batch, three times by itself.
    assert max(count for number, count in handler.attempts.items() if number != 4) == 2
    assert handler.attempts[5] == 1
    assert setup.checkpointed() == 9
    assert setup.checkpoint().state == b"9"


def test_a_batch_error_names_the_failed_events():
    """All other events of the call are done. State counts each event once."""

    class Naming(Poisoned):
        async def process_events(self, context, events):
            failed = []
            for event in events:
                self.attempts[event.sequence_number] += 1
                if event.sequence_number in {2, 6} and self.attempts[event.sequence_number] < 3:
                    failed.append((event, ValueError(event.sequence_number)))
                else:
                    context.state = str(int(context.state or b"0") + 1).encode()
                    self.setup.handled.append(("0", event.sequence_number))
            if failed:
                raise BatchError(failed)

    setup, (handler,), statistics = served(Naming, FailurePolicy())

    assert setup.numbers() == [0, 1, 3, 4, 5, 7, 8, 9, 2, 6]
    assert handler.attempts[2] == handler.attempts[6] == 3
    assert (setup.checkpointed(), setup.checkpoint().state) == (9, b"10")
    assert statistics.counters.handled_count == 10


async def test_no_checkpoint_is_written_while_an_earlier_event_has_failed():
    """Its state would count events above its position, which the next owner would count again."""
    setup = Setup()
    setup.publish(5)
    stored = []

    class Naming(Noting):
        async def process_events(self, context, events):
            for event in events:
                if event.sequence_number != 1:
                    context.state = str(int(context.state or b"0") + 1).encode()
            if any(event.sequence_number == 1 for event in events):
                raise BatchError([(e, ValueError()) for e in events if e.sequence_number == 1])

    policy = CheckpointPolicy(max_events=1)
    async with setup.processor(lambda: Naming(setup), checkpoint_policy=policy, batch_size_max=3):
        await seconds(20)
        stored.append(setup.checkpointed())

    assert (stored[0], setup.checkpointed()) == (None, None)


async def test_without_a_state_a_stop_repeats_only_the_events_that_a_batch_error_named():
    """The checkpoint has the position below them, and the others as completed ranges."""
    setup = Setup()
    setup.publish(5)

    class Naming(Noting):
        async def process_events(self, context, events):
            failed = [event for event in events if event.sequence_number == 1]
            setup.handled.extend(("0", event.sequence_number) for event in events)
            if failed:
                raise BatchError([(event, ValueError()) for event in failed])

    async with setup.processor(lambda: Naming(setup)):
        await seconds(20)
    stopped = setup.checkpoint()
    setup.handled.clear()
    async with setup.processor(lambda: Naming(setup)):
        await seconds(20)

    assert stopped is not None
    assert (stopped.sequence_number, stopped.completed) == (0, (SequenceRange(2, 4),))
    assert set(setup.numbers()) == {1}


def test_a_transient_error_does_not_count_as_an_attempt():
    """While for example a database is away, no event is given up."""

    class Away(Poisoned):
        async def process_event(self, context, event):
            self.attempts[event.sequence_number] += 1
            if event.sequence_number == 4 and self.attempts[4] < 20:
                raise ConnectionError
            self.setup.handled.append(("0", event.sequence_number))

    policy = FailurePolicy(attempts_max=1, action=FailureAction.SKIP, transient=(ConnectionError,))
    setup, (handler,), statistics = served(Away, policy)

    assert setup.numbers() == list(range(10))
    assert handler.attempts[4] == 20
    assert statistics.counters.skipped_count == 0


async def test_a_failing_sink_holds_up_the_partition():
    """The position passes an event only after its dead letter is stored."""
    setup = Setup()
    setup.publish(10)
    sink = MemoryDeadLetterSink()
    sink.is_out = True
    policy = CheckpointPolicy(max_events=1)
    async with setup.processor(
        lambda: Poisoned(setup),
        sink=sink,
        failure_policy=THREE_THEN_LETTER,
        handler_backoff=QUICK,
        checkpoint_policy=policy,
    ):
        await seconds(30)
        during = setup.checkpointed(), len(setup.numbers())
        sink.is_out = False
        await seconds(10)
        after = setup.checkpointed(), len(setup.numbers()), len(sink.letters)

    assert (during, after) == ((3, 4), (9, 9, 1))


async def test_a_stop_while_the_sink_fails_keeps_the_event():
    """The next owner gives it up again; no event is dropped silently."""
    setup = Setup()
    setup.publish(10)
    sink = MemoryDeadLetterSink()
    sink.is_out = True
    settings: dict[str, Any] = {
        "failure_policy": THREE_THEN_LETTER,
        "handler_backoff": QUICK,
    }
    async with setup.processor(lambda: Poisoned(setup), sink=sink, **settings):
        await seconds(30)
    stopped_at = setup.checkpointed()
    sink.is_out = False
    async with setup.processor(lambda: Poisoned(setup), "b", sink=sink, **settings):
        await seconds(30)

    assert (stopped_at, sink.letters[0].owner_id, setup.numbers()) == (
        3,
        "b",
        [0, 1, 2, 3, 5, 6, 7, 8, 9],
    )


def test_a_function_may_be_the_sink_of_dead_letters():
    """If it raises, the letter counts as not stored, and the call is repeated."""
    calls = []

    async def take(letter):
        calls.append(letter.event.sequence_number)
        if len(calls) < 3:
            raise OSError("disk full")

    sink = FunctionDeadLetterSink(take)
    _, _, statistics = served(Poisoned, THREE_THEN_LETTER, sink=sink)

    assert calls == [4, 4, 4]
    assert statistics.counters.dead_lettered_count == 1


async def test_the_dead_letter_action_without_a_sink_is_refused():
    """When the processor is built."""
    with pytest.raises(ConfigurationError, match="dead_letters is not given"):
        Setup().processor(failure_policy=THREE_THEN_LETTER)


@pytest.mark.parametrize(
    "wrong", [{"attempts_max": 0}, {"deliveries_max": 2}], ids=lambda wrong: next(iter(wrong))
)
def test_invalid_limits_of_attempts_are_refused(wrong):
    """With the value and the remedy."""
    with pytest.raises(ConfigurationError, match=f"{next(iter(wrong.values()))}: give"):
        EventProcessorConfig(failure_policy=FailurePolicy(**wrong))


@pytest.mark.parametrize("lanes", [{}, {"key_concurrency": 3}], ids=["in order", "lanes"])
async def test_a_timeout_error_of_the_handler_is_a_failure(lanes, caplog):
    """For example from a database. Only a call whose lease expired is cancelled without blame."""

    class TimingOut(Poisoned):
        async def process_events(self, context, events):
            self.attempts[events[0].sequence_number] += 1
            await seconds(0.1)
            raise TimeoutError("the database did not answer")

    setup = Setup()
    handler = TimingOut(setup)
    setup.publish(1)
    slow = Backoff(initial=timedelta(seconds=1), maximum=timedelta(seconds=10))
    async with setup.processor(lambda: handler, handler_backoff=slow, **lanes) as processor:
        await seconds(100)
        errors = processor.statistics().counters.handler_error_count

    assert 5 <= handler.attempts[0] <= 25
    assert errors == len(handler.errors) == handler.attempts[0]
    assert not any("lease_expired" in record.getMessage() for record in caplog.records)


async def test_an_outage_of_the_store_in_a_call_is_no_attempt_at_its_events():
    """As of a transaction, or of a checkpoint that the handler waits for."""
    setup = Setup()
    setup.publish(3)
    calls = []

    class Waiting(Noting):
        async def process_events(self, context, events):
            calls.append(len(events))
            if len(calls) <= 5:
                raise StoreUnavailableError("the file is locked")
            await super().process_events(context, events)

    policy = FailurePolicy(attempts_max=2, action=FailureAction.SKIP)
    async with setup.processor(lambda: Waiting(setup), failure_policy=policy) as processor:
        await seconds(120)
        counters = processor.statistics().counters

    assert setup.numbers() == [0, 1, 2]
    assert counters.skipped_count == 0
