"""One object given to two processors: the first that stops would close it for both."""

from random import Random

import pytest

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import (
    ConfigurationError,
    EventProcessor,
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
)
from eventproc._core.placement.even import Even
from eventproc._core.placement.published import Published
from eventproc.dead_letters import MemoryDeadLetterSink
from eventproc.errors import EventProcError
from eventproc.rosters import FixedRoster
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.testing import FaultyCheckpointStore
from tests.scenarios.group_setup import seconds
from tests.scenarios.test_forks import Idle


class Connected(MemoryDeadLetterSink):
    """A sink with a connection."""

    def __init__(self):
        super().__init__()
        self.is_open = False

    async def open(self):
        """Connect."""
        self.is_open = True

    async def close(self):
        """Disconnect."""
        self.is_open = False


class ConnectedRoster(FixedRoster):
    """A roster with a connection."""

    async def open(self):
        """Connect."""


class Program:
    """Processors of the hubs *orders* and *payments*."""

    def __init__(self):
        self.account = MemoryAccount()
        self.hubs = {name: MemoryHub(2, name=name) for name in ("orders", "payments")}

    def processor(self, hub, **parts):
        """A processor of one hub; *parts* replace what it would have of its own."""
        own = {
            "source": MemoryEventSource(self.hubs[hub]),
            "store": MemoryCheckpointStore(self.account),
            "dead_letters": MemoryDeadLetterSink(),
            "owner_id": "host-1",
        }
        config = EventProcessorConfig(
            uses_store_thread=False,
            placement=Published(Even()) if "roster" in parts else Even(),
            failure_policy=FailurePolicy(attempts_max=1, action=FailureAction.DEAD_LETTER),
        )
        return EventProcessor(handler=Idle, config=config, **{**own, **parts})

    def recorded(self, processor):
        """The owners and members of a group."""
        records = self.account.records(processor.consumer_group)
        owners = {each.owner_id for each in records.ownership_by_partition.values()}
        return owners | set(records.member_by_owner)


async def no_answer():
    """Take the place of an ``open``."""
    raise EventProcError("no answer")


def shared_objects(program):
    """One of each kind that a processor opens; the store also behind two other stores."""
    store = MemoryCheckpointStore(program.account)
    source = MemoryEventSource(program.hubs["orders"])
    sink, roster = Connected(), ConnectedRoster(["host-1"], own_id="host-1")
    return {
        "store": ({"store": store}, {"store": store}),
        "wrapped store": (
            {"store": FaultyCheckpointStore(store, Random(1))},
            {"store": FaultyCheckpointStore(store, Random(2))},
        ),
        "source": ({"source": source}, {"source": source, "consumer_group": "audit"}),
        "sink": ({"dead_letters": sink}, {"dead_letters": sink}),
        "roster": ({"roster": roster}, {"roster": roster}),
    }


@pytest.mark.parametrize("what", ["store", "wrapped store", "source", "sink", "roster"])
async def test_an_object_that_a_running_processor_has_opened_is_refused_to_another(what):
    """The first goes on, and its stop leaves no record; then the other one may have the object."""
    program = Program()
    for_first, for_second = shared_objects(program)[what]
    first = program.processor("orders", **for_first)
    second = program.processor("payments", **for_second)
    async with first:
        await seconds(30)
        with pytest.raises(ConfigurationError, match="used by another processor") as refused:
            await second.start()
        await seconds(30)
        owned = first.statistics().owned
    left = program.recorded(first)
    async with second:
        await seconds(30)
        owned_by_second = second.statistics().owned

    assert "of its own, built with the same arguments" in str(refused.value)
    assert owned == owned_by_second == ("0", "1")
    assert left == program.recorded(second) == {None}


@pytest.mark.parametrize("what", ["store", "source", "sink", "roster"])
async def test_an_object_that_did_not_open_may_be_given_to_another_processor(what):
    """The first one's start failed, so it uses nothing; a program may keep it to try again."""
    program = Program()
    for_first, for_second = shared_objects(program)[what]
    first = program.processor("orders", **for_first)
    second = program.processor("orders", **for_second)
    (shared,) = set(for_first.values())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared, "open", no_answer)
        with pytest.raises(EventProcError, match="no answer"):
            await first.start()
    async with second:
        await seconds(30)
        owned = second.statistics().owned

    assert first.statistics().owned == ()
    assert owned == ("0", "1")


async def test_what_opens_nothing_may_be_given_to_any_number_of_processors():
    """A sink in memory or of a function, and a fixed roster."""
    program, sink = Program(), MemoryDeadLetterSink()
    roster = FixedRoster(["host-1"], own_id="host-1")
    both = [
        program.processor(hub, dead_letters=sink, roster=roster) for hub in ("orders", "payments")
    ]
    async with both[0], both[1]:
        await seconds(30)
        found = [each.statistics().owned for each in both]

    assert found == [("0", "1"), ("0", "1")]
