"""The contract of sources: what it finds in a source that breaks it, and what it runs on which."""

import asyncio

import pytest

from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.testing import SourceBench, check_event_source, run_virtual
from eventproc.testing._clauses import clauses_of
from eventproc.testing._source_contract import queues
from tests.scenarios.fake_queue import FakeQueue, FakeQueues


class Hub(SourceBench):
    """A hub in memory, read by a source of this class."""

    def __init__(self, kind: type[MemoryEventSource]) -> None:
        self.hub = MemoryHub(3)
        self._kind = kind

    def source(self):
        return self._kind(self.hub)

    async def publish(self, partition_id, *bodies):
        for body in bodies:
            self.hub.publish(body, partition_id=partition_id)


class Queues(SourceBench):
    """Fakes of queues, in memory."""

    def __init__(self) -> None:
        self.queues = {str(number): FakeQueue() for number in range(3)}

    def source(self):
        return FakeQueues(self.queues)

    async def publish(self, partition_id, *bodies):
        self.queues[partition_id].put(*map(int, bodies))


class Skipping(MemoryEventSource):
    """Begins after the position also if it is inclusive."""

    async def open_receiver(self, consumer_group, partition_id, position):
        if position.is_inclusive and position.sequence_number:
            position = type(position).from_sequence_number(position.sequence_number)
        return await super().open_receiver(consumer_group, partition_id, position)


class Slashed(MemoryEventSource):
    """Has a namespace that a processor refuses."""

    @property
    def fully_qualified_namespace(self):
        return "/data/events.db"


class Silent(MemoryEventSource):
    """Its calls do not return."""

    async def partition_properties(self, partition_id):
        await asyncio.Event().wait()


class Faulty(MemoryEventSource):
    """Fails with an error that is not one of the library's."""

    async def partition_properties(self, partition_id):
        raise KeyError(partition_id)


async def test_a_source_that_begins_too_late_fails():
    """With the name of the clause, and what was received."""
    with pytest.raises(AssertionError, match=r"a_sequence_number_.*: the position is .*received"):
        await check_event_source(
            lambda: Hub(Skipping), only="a_sequence_number_begins_after_or_at_its_event"
        )


async def test_a_name_that_no_processor_takes_fails():
    """Before a processor refuses the source."""
    with pytest.raises(AssertionError, match=r"its_names_.*'/data/events.db'.*without a slash"):
        await check_event_source(lambda: Hub(Slashed))


def test_a_call_that_does_not_return_fails_with_the_name_of_its_clause():
    """The traceback of the cause shows the call."""
    with pytest.raises(AssertionError, match="events_come_in_order_and_once: not over after 0:05"):
        run_virtual(check_event_source(lambda: Hub(Silent), only="events_come_in_order_and_once"))


async def test_a_fault_of_the_source_is_named_with_its_class():
    """The text of a ``KeyError`` alone says nothing."""
    with pytest.raises(AssertionError, match=r"events_come_in_order_and_once: KeyError\('0'\)"):
        await check_event_source(lambda: Hub(Faulty), only="events_come_in_order_and_once")


@pytest.mark.parametrize("make", [lambda: Hub(MemoryEventSource), Queues], ids=["log", "queues"])
async def test_clauses_of_the_other_port_are_skipped(make):
    """They are reported without a time."""
    reports = await check_event_source(
        make, only="what_is_settled_is_gone_and_the_rest_comes_again"
    )
    logs = await check_event_source(make, only="latest_begins_after_all_existing_events")
    was_run = [reports[0].took is not None, logs[0].took is not None]

    assert was_run == ([True, False] if make is Queues else [False, True])


@pytest.mark.parametrize("clause", [clause.__name__ for clause in clauses_of(queues)])
async def test_queues_in_memory_meet_the_contract(clause):
    """The scenarios about queues rely on it."""
    await check_event_source(Queues, only=clause)


def test_an_unknown_clause_is_an_error_that_names_it():
    """A typo in ``only`` does not pass as a contract that was checked."""
    with pytest.raises(ValueError, match="no clause named 'nonsense'"):
        asyncio.run(check_event_source(lambda: Hub(MemoryEventSource), only="nonsense"))
