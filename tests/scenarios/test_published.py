"""Published placements: a leader that dies or is suspended, and records that others write."""

import asyncio
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import Even, EventProcessorConfig, Published
from eventproc._core.placement.published_plan import PLAN_RECORD, PublishedPlan, plan_in
from eventproc._group.balancer import Balancer
from eventproc.models import GroupRecord, WriteOutcome
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup, seconds, stop_all

PUBLISHED = {"placement": Published(Even())}
EXPIRATION_S = EventProcessorConfig().ownership_expiration.total_seconds()
RECORD_CALLS = ("read_record", "write_record", "list_members")


class Watched(Setup):
    """Notes the published plan that each processor follows in each cycle."""

    def __init__(self, partition_count: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(partition_count)
        self.followed: dict[str, list[int]] = {}
        real = Balancer.cycle

        async def cycle(balancer, *arguments):
            done = await real(balancer, *arguments)
            group = balancer._memory.group
            if group.published is not None:
                self.followed.setdefault(group.owner_id, []).append(group.published.number)
            return done

        patch.setattr(Balancer, "cycle", cycle)

    async def started(self, names, **settings):
        """Start processors one after the other."""
        processors = [self.processor(owner_id=n, **{**PUBLISHED, **settings}) for n in names]
        for processor in processors:
            await processor.start()
            await seconds(15)
        return processors

    @property
    def published(self) -> PublishedPlan:
        """What is stored."""
        found = plan_in(self.account.records(self.group).record_by_name[PLAN_RECORD].content)
        assert found is not None
        return found

    def check_numbers(self) -> None:
        """No processor ever followed a lower number than before."""
        for name, numbers in self.followed.items():
            for former, later in pairwise(numbers):
                assert former <= later, name

    def counts(self) -> list[int]:
        """How many partitions each owner has."""
        owners = list(self.owners().values())
        return sorted(owners.count(owner) for owner in set(owners))


@contextmanager
def counting(names):
    """Count these operations of all stores."""
    count: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            real = getattr(MemoryCheckpointStore, name)

            def counted(self, *args, name=name, real=real):
                count[name] += 1
                return real(self, *args)

            patch.setattr(MemoryCheckpointStore, name, counted)
        yield count


def number_in(record):
    """Return the number of the published plan in a record."""
    published = plan_in(record.content)
    assert published is not None
    return published.number


def result_of(scenario, partition_count=12):
    """Play a scenario on virtual time; no published plan is followed after a newer one."""
    with pytest.MonkeyPatch.context() as patch:

        async def main():
            setup = Watched(partition_count, patch)
            try:
                return await scenario(setup)
            finally:
                setup.check_numbers()

        return run_virtual(main())


def test_a_group_shares_as_its_leader_says():
    """The plan is that of the inner placement; the first one that comes leads, and goes on to."""

    async def scenario(setup):
        processors = await setup.started("bac")
        found = setup.counts(), setup.published.leader, setup.published.placement
        await stop_all(processors)
        return found

    assert result_of(scenario) == ([4, 4, 4], "b", "Published:Even")


def test_when_the_leader_is_killed_the_next_one_publishes():
    """Its partitions are served again, and no number is followed twice or out of order."""

    async def scenario(setup):
        a, b, c = await setup.started("abc")
        before = setup.published
        setup.store_by_owner["a"].is_out = True
        await seconds(150)
        after, owners = setup.published, setup.counts()
        await stop_all([a, b, c])
        return before.leader, after.leader, after.number > before.number, owners

    assert result_of(scenario) == ("a", "b", True, [6, 6])


@pytest.mark.parametrize("frozen_s", [5, 40, 200])
def test_a_leader_that_is_suspended_while_it_publishes_loses_the_write(frozen_s):
    """While it was away, another one has published; its own plan is followed by nobody."""

    async def scenario(setup):
        a, b = await setup.started("ab")
        store = setup.store_by_owner["a"]
        write, sent, outcomes = store.write_record, [], []

        async def suspended(group, record):
            sent.append(number_in(record))
            store.is_out = True
            await asyncio.sleep(frozen_s)
            store.is_out = False
            result = await write(group, record)
            outcomes.append(result.outcome)
            return result

        store.write_record = suspended
        (c,) = await setup.started("c")
        await seconds(frozen_s + 60)
        store.write_record = write
        await seconds(60)
        found = outcomes[0], sent[0], setup.published.number, setup.counts()
        await stop_all([a, b, c])
        return found

    outcome, number, last, counts = result_of(scenario)

    assert counts == [4, 4, 4]
    if frozen_s > EXPIRATION_S:
        assert (outcome, last > number) == (WriteOutcome.LOST, True)
    else:
        assert outcome is WriteOutcome.WON


@pytest.mark.parametrize("content", [None, b"damaged", "old"])
def test_a_record_that_an_operator_deletes_or_restores_is_written_again(content):
    """With a number above those that the members know. No partition moves meanwhile."""

    async def scenario(setup):
        (a,) = await setup.started("a")
        records = setup.account.records(setup.group).record_by_name
        old = records[PLAN_RECORD]
        (b,) = await setup.started("b")
        before, owners = setup.published, setup.owners()
        if content is None:
            del records[PLAN_RECORD]
        else:
            bad = old.content if content == "old" else content
            records[PLAN_RECORD] = GroupRecord(name=PLAN_RECORD, content=bad, etag="restored")
        await seconds(30)
        after, moved = setup.published, setup.owners() != owners
        (c,) = await setup.started("c")
        counts = setup.counts()
        await stop_all([a, b, c])
        return after.number > before.number, after.says_as(before), moved, counts

    assert result_of(scenario) == (True, True, False, [4, 4, 4])


def test_a_record_that_cannot_be_read_changes_nothing(caplog):
    """The group goes on with the plan that it follows, renews its leases, and logs an error."""

    async def scenario(setup):
        a, b = await setup.started("ab")
        owners = setup.owners()
        records = setup.account.records(setup.group).record_by_name
        records["plan"] = replace(
            records["plan"], content=b'{"version": 99}', etag=setup.account.new_etag()
        )
        await seconds(200)
        found = setup.owners() == owners
        await stop_all([a, b])
        return found

    assert result_of(scenario)
    assert sum("plan_unreadable" in record.message for record in caplog.records) == 2


def test_members_of_another_placement_follow_and_never_lead():
    """A rolling deployment: the group changes once, in the middle, and moves no partition."""

    async def scenario(setup):
        even = await setup.started("ab", placement=Even())
        before = setup.owners()
        own = await setup.started("c", placement=Published(Own()))
        setup.account.records(setup.group).record_by_name.clear()
        more = await setup.started("de", placement=Published(Own()))
        found = setup.published.leader, setup.published.placement, setup.counts()
        assert before
        await stop_all([*even, *own, *more])
        return found

    leader, placement, counts = result_of(scenario)

    assert (leader, placement) == ("c", f"Published:{Own().name}")
    assert counts == [2, 2, 2, 3, 3]


class Own(Even):
    """A placement of the user's, which processors with another one do not have."""


def test_a_balanced_group_neither_reads_nor_writes_the_plan():
    """Each listing of members says that it is unchanged."""

    async def scenario(setup):
        processors = await setup.started("ab")
        with counting(RECORD_CALLS) as count:
            await seconds(300)
        await stop_all(processors)
        even = await setup.started("cd", placement=Even())
        with counting(RECORD_CALLS) as without:
            await seconds(300)
        await stop_all(even)
        return count, without

    count, without = result_of(scenario)

    assert count["list_members"] > 50
    assert (count["read_record"], count["write_record"]) == (0, 0)
    assert (without["read_record"], without["write_record"]) == (0, 0)
