"""What a vote reads of a group, and which votes reach those that wait for changes."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc._base.tasks import end
from eventproc._core.ownership.pauses import PAUSES_RECORD
from eventproc._core.scaling.decision import Decision, Reason, ScalingRules
from eventproc._core.scaling.readings import PartitionReading, Reading
from eventproc._group.autoscaler import Autoscaler, Vote, read_group
from eventproc.admin import pause_group
from eventproc.errors import SourceUnavailableError, StoreUnavailableError
from eventproc.models import (
    CheckpointUpdate,
    ConsumerGroup,
    GroupRecord,
    Member,
    MemberStatus,
    OwnershipClaim,
    PartitionProperties,
)
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.testing._virtual_time import run_virtual
from tests.unit.eventproc._command.group.views import NOW

EVERY = timedelta(seconds=10)
RULES = ScalingRules(replicas_min=0, cooldown=timedelta(minutes=1), checkpoint_interval=EVERY)
STORE_AWAY = StoreUnavailableError("the store\n does not answer")
HUB_AWAY = SourceUnavailableError("the hub does not answer")


def group(*, last, handled, members):
    """Return a reading of one partition."""
    return Reading(
        at_s=0,
        partitions={
            "0": PartitionReading(
                first=0, last=last, handled=handled, owner_id="a" if members else None
            )
        },
        member_ids=frozenset("abc"[:members]),
    )


EMPTY = group(last=-1, handled=None, members=0)
WAITING = group(last=4, handled=None, members=0)
WORKING = group(last=4, handled=4, members=1)


def seen(ask, *answers):
    """Return what *ask* yields while a group is read once for each answer."""

    async def scenario():
        given = iter(answers)

        async def read():
            answer = next(given)
            if isinstance(answer, Exception):
                raise answer
            return replace(answer, at_s=asyncio.get_running_loop().time())

        async def collect():
            async for each in ask(scaler):
                found.append(each)  # noqa: PERF401 - what was found is kept when this is cancelled

        found: list[object] = []
        scaler = Autoscaler(read, RULES)
        tasks = [asyncio.create_task(collect()), asyncio.create_task(scaler.run(EVERY))]
        await asyncio.sleep((len(answers) - 0.5) * EVERY.total_seconds())
        await end(tasks)
        return found

    return run_virtual(scenario())


def votes(*answers):
    """Return the number and the error of each vote that is shown."""
    return [(v.decision.replicas, v.error) for v in seen(Autoscaler.changes, *answers)]


def test_begin_and_end_of_an_outage_are_changes():
    """The number is the same in all of these votes; the outage is shown once, with its error."""
    assert votes(WORKING, WORKING, STORE_AWAY, HUB_AWAY, HUB_AWAY, WORKING) == [
        (1, None),
        (1, "the store does not answer"),
        (1, None),
    ]


def test_an_outage_at_the_start_is_shown_without_a_number():
    """Before the first reading there is no vote at all."""
    assert votes(STORE_AWAY, STORE_AWAY, WORKING) == [
        (None, "the store does not answer"),
        (1, None),
    ]


def test_another_number_is_a_change():
    """The same one is none, even if its reason differs."""
    found = seen(Autoscaler.changes, EMPTY, EMPTY, WAITING, WAITING)

    assert [(v.decision.replicas, v.decision.reason) for v in found] == [
        (0, Reason.FIRST_READING),
        (1, Reason.WOKEN),
    ]


def test_activity_is_yielded_when_it_changes():
    """Not again at begin or end of an outage, nor before the first answer."""
    answers = (STORE_AWAY, EMPTY, HUB_AWAY, EMPTY, WAITING, WORKING, HUB_AWAY, WORKING)

    assert seen(Autoscaler.activity, *answers) == [False, True]


def test_an_idle_group_is_not_active_any_more():
    """Nothing waits and nothing arrives, so after the cool-down it needs no process."""
    assert seen(Autoscaler.activity, *[WORKING] * 10) == [True, False]


def test_a_vote_as_json_has_rounded_rates():
    """What is not known is null, and there is an error only in an outage."""
    decision = Decision(replicas=2, reason=Reason.ENOUGH, backlog=3, arrival_per_s=2 / 3)
    common = {"replicas": 2, "reason": Reason.ENOUGH.value, "backlog": 3, "arrival_per_s": 0.667}
    unknown = {"drain_per_s": None, "rate_of_one": None}

    assert Vote(decision=decision).as_json() == common | unknown
    assert Vote(decision=decision, error="x").as_json() == common | unknown | {"error": "x"}


@pytest.mark.parametrize("error", [STORE_AWAY, HUB_AWAY])
def test_a_single_vote_fails_without_an_answer(error):
    """Unlike those of ``run``: whoever asks once wants to know."""

    async def read():
        raise error

    with pytest.raises(type(error)):
        run_virtual(Autoscaler(read, RULES).decide())


GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="orders")
EXPIRATION = timedelta(seconds=60)


class Reporting(MemoryEventSource):
    """A source of a hub with one partition, about which the hub reports this."""

    def __init__(self, *, beginning, last, is_empty):
        super().__init__(MemoryHub(1))
        self._reported = PartitionProperties(
            partition_id="0",
            beginning_sequence_number=beginning,
            last_enqueued_sequence_number=last,
            last_enqueued_offset=str(last),
            last_enqueued_time=NOW,
            is_empty=is_empty,
        )

    async def partition_properties(self, partition_id):
        """Return what the hub reports."""
        return self._reported


async def reading_of(store, source=None):
    """Return a reading of the group; its hub has two partitions unless a source is given."""
    async with source or MemoryEventSource(MemoryHub(2)) as opened:
        return await read_group(store, GROUP, opened, expiration=EXPIRATION, clock=lambda: 5.0)


async def join(store, owner_id, status=MemberStatus.ACTIVE, *, owns=()):
    """Write the records of a member that owns these partitions."""
    member = Member(owner_id=owner_id, incarnation="1", status=status)
    await store.announce_member(GROUP, member)
    claims = [OwnershipClaim(partition_id=p, owner_id=owner_id, expected_etag=None) for p in owns]
    await store.claim_ownership(GROUP, claims)


async def test_members_that_leave_do_not_count():
    """Not even while they still own partitions, which the others are about to get."""
    async with MemoryCheckpointStore() as store:
        await join(store, "staying")
        await join(store, "leaving", MemberStatus.LEAVING, owns=["0"])
        await join(store, "left", MemberStatus.LEAVING)
        found = await reading_of(store)

    assert found.member_ids == {"staying"}
    assert found.partitions["0"].owner_id == "leaving"


async def test_members_on_standby_count_while_they_own_partitions():
    """A member without a record counts as well: it is one of Azure's processors."""
    async with MemoryCheckpointStore() as store:
        await join(store, "waiting", MemberStatus.STANDBY)
        await join(store, "replacing", MemberStatus.STANDBY, owns=["0"])
        claim = OwnershipClaim(partition_id="1", owner_id="azure", expected_etag=None)
        await store.claim_ownership(GROUP, [claim])
        found = await reading_of(store)

    assert found.member_ids == {"replacing", "azure"}


async def test_what_has_expired_does_not_count():
    """Neither a member nor an owner that did not renew."""
    now = NOW
    async with MemoryCheckpointStore(MemoryAccount(now=lambda: now)) as store:
        await join(store, "dead", owns=["0"])
        now += EXPIRATION + timedelta(seconds=1)
        found = await reading_of(store)

    assert found.member_ids == frozenset()
    assert found.partitions["0"].owner_id is None


@pytest.mark.parametrize(
    ("beginning", "last", "is_empty", "backlog"),
    [(3, 9, True, 0), (3, 9, False, 7), (0, -1, True, 0)],
)
async def test_an_empty_partition_has_no_backlog(beginning, last, is_empty, backlog):
    """A hub may report an older first number for it; without a checkpoint that would count."""
    source = Reporting(beginning=beginning, last=last, is_empty=is_empty)
    async with MemoryCheckpointStore() as store:
        found = await reading_of(store, source)

    assert found.backlog == backlog


async def test_a_backlog_counts_from_the_checkpoint():
    """As soon as there is one."""
    async with MemoryCheckpointStore() as store:
        update = CheckpointUpdate(
            partition_id="0", offset="7", sequence_number=7, replaces=None, writer="a"
        )
        await store.update_checkpoint(GROUP, update)
        found = await reading_of(store, Reporting(beginning=3, last=9, is_empty=False))

    assert (found.at_s, found.backlog) == (5.0, 2)


async def test_a_checkpoint_of_a_former_hub_counts_as_none():
    """It lies beyond the end of this one, so all retained events are backlog."""
    async with MemoryCheckpointStore() as store:
        update = CheckpointUpdate(
            partition_id="0", offset="50", sequence_number=50, replaces=None, writer="a"
        )
        await store.update_checkpoint(GROUP, update)
        found = await reading_of(store, Reporting(beginning=3, last=9, is_empty=False))

    assert found.backlog == 7


async def test_a_partition_that_is_paused_has_no_backlog():
    """If the record of pauses cannot be read, all are: processors take it that way, too."""
    async with MemoryCheckpointStore() as store:
        await pause_group(store, GROUP, ["1"], reason="x", expiration=EXPIRATION)
        one = await reading_of(store)
        etag = (await store.list_members(GROUP)).record_etags[PAUSES_RECORD]
        await store.write_record(GROUP, GroupRecord(name=PAUSES_RECORD, content=b"?", etag=etag))
        every = await reading_of(store)

    assert [p.is_paused for p in one.partitions.values()] == [False, True]
    assert [p.is_paused for p in every.partitions.values()] == [True, True]
