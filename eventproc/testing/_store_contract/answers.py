"""Clauses on lost answers: a request was carried out, but its answer did not arrive.

They need a backend whose answers can be lost, and are skipped without one.

Relied on by: checkpointstores/_requests.py
"""

from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from eventproc.errors import StoreUnavailableError
from eventproc.models import IN_BATCH, NOT_BEGUN, GroupRecord, Member, MemberStatus, WriteOutcome
from eventproc.testing._clauses import require
from eventproc.testing._store_contract.bench import (
    Bench,
    claim_one,
    own,
    owners,
    read_back,
    require_lost,
    require_won,
    store_checkpoint,
    update_of,
)
from eventproc.testing._store_contract.group_records import write
from eventproc.testing._store_contract.members import announce, members


def losing(bench: Bench, count: int | None) -> AbstractAsyncContextManager[None]:
    """Lose answers. The runner skips these clauses if that is impossible."""
    assert bench.lose_answers is not None
    return bench.lose_answers(count)


async def own_claim_is_recognised(bench: Bench) -> None:
    """A claim whose first answer was lost is won: first claim, renewal, hand-over, release."""
    group = bench.new_group()
    etag = None
    for owner_id in ("a", "a", "b", None, "a"):
        async with losing(bench, 1):
            record = await own(bench.store, group, "0", owner_id, etag)
        require(
            await owners(bench.other, group) == {"0": record},
            "a claim that was won on the second try must come with the record as stored",
        )
        etag = record.etag


async def other_owners_claim_is_not_recognised(bench: Bench) -> None:
    """A claim that another owner has overtaken is lost, even if its first answer did not arrive."""
    group = bench.new_group()
    first = await own(bench.store, group, "0", "a")
    second = await own(bench.other, group, "0", "b", first.etag)
    for expected_etag in (first.etag, None):
        async with losing(bench, 1):
            result = await claim_one(bench.store, group, "0", "a", expected_etag)
        require_lost(
            result.outcome,
            "another owner's record must not count as a won claim",
        )
    require(await owners(bench.store, group) == {"0": second}, "a lost claim must change nothing")


async def own_checkpoint_is_recognised(bench: Bench) -> None:
    """A checkpoint whose first answer was lost is won: first, advanced, with state, adopted."""
    group = bench.new_group()
    checkpoint = None
    for number, state, writer, isolation in (
        (1, None, "pump-a", NOT_BEGUN),
        (2, None, "pump-a", NOT_BEGUN),
        (3, b"three", "pump-a", NOT_BEGUN),
        (3, None, "pump-b", IN_BATCH),
        (4, b"", "pump-b", NOT_BEGUN),
    ):
        update = update_of(number, checkpoint, state=state, writer=writer, isolation=isolation)
        async with losing(bench, 1):
            checkpoint = await store_checkpoint(bench.store, group, update)
        require(
            await read_back(bench.other, group) == checkpoint,
            "a checkpoint won on the second try must come as it is stored",
        )


async def adoption_is_not_recognised(bench: Bench) -> None:
    """A checkpoint of another pump is not one's own write, even with identical content."""
    group = bench.new_group()
    former = await store_checkpoint(bench.store, group, update_of(7, None, state=b"seven"))
    adopted = await store_checkpoint(
        bench.other, group, update_of(7, former, writer="pump-b", state=b"seven")
    )
    for state in (b"seven", None):
        async with losing(bench, 1):
            result = await bench.store.update_checkpoint(
                group, update_of(7, former, writer="pump-a", state=state)
            )
        require_lost(
            result.outcome,
            "an adoption by a new owner must not be taken for one's own write, although it "
            "repeats the content",
        )
    require(await read_back(bench.store, group) == adopted, "a lost update must change nothing")


async def own_earlier_checkpoint_is_not_recognised(bench: Bench) -> None:
    """A write by the same pump with another position, or with another state, is another write."""
    group = bench.new_group()
    first = await store_checkpoint(bench.store, group, update_of(6, None))
    second = await store_checkpoint(bench.store, group, update_of(7, first, state=b"old"))
    async with losing(bench, 1):
        result = await bench.store.update_checkpoint(group, update_of(7, first, state=b"new"))
    require_lost(
        result.outcome,
        "a write must not be reported as won while another state is stored",
    )
    require(await read_back(bench.store, group) == second, "a lost update must change nothing")
    third = await store_checkpoint(bench.store, group, update_of(8, second))
    async with losing(bench, 1):
        result = await bench.store.update_checkpoint(group, update_of(9, second))
    require_lost(
        result.outcome,
        "a write must not be reported as won while another position is stored",
    )
    require(await read_back(bench.store, group) == third, "a lost update must change nothing")


async def own_member_record_is_recognised(bench: Bench) -> None:
    """Member writes are won after a lost answer; another incarnation's record is not one's own."""
    group = bench.new_group()
    async with losing(bench, 1):
        member = await announce(bench.store, group, Member(owner_id="a", incarnation="1"))
    async with losing(bench, 1):
        member = await announce(bench.store, group, replace(member, status=MemberStatus.LEAVING))
    require(
        await members(bench.other, group) == {member}, "a member record must be as it is stored"
    )
    async with losing(bench, 1):
        second = Member(owner_id="a", incarnation="2", status=MemberStatus.LEAVING)
        result = await bench.other.announce_member(group, second)
    require_lost(
        result.outcome,
        "another incarnation's record must not count as one's own",
    )
    async with losing(bench, 1):
        outcome = await bench.store.withdraw_member(group, member)
    require_won(outcome, "a withdrawal whose first answer was lost must be won")
    require(await members(bench.store, group) == set(), "what was withdrawn must be gone")


async def own_group_record_is_recognised(bench: Bench) -> None:
    """A group record whose first answer was lost is won; the same by another writer is not."""
    group = bench.new_group()
    async with losing(bench, 1):
        first = await write(bench.store, group, GroupRecord(name="plan", content=b"1"))
    async with losing(bench, 1):
        second = await write(bench.store, group, replace(first, content=b"2"))
    for outdated in (None, first.etag):
        async with losing(bench, 1):
            result = await bench.other.write_record(group, replace(second, etag=outdated))
        require_lost(
            result.outcome, "the same content by another writer must not count as one's own"
        )
    require(await bench.other.read_record(group, "plan") == second, "a lost write changes nothing")


async def no_answer_is_unknown(bench: Bench) -> None:
    """While no answer arrives, writes are unknown and reads fail; afterwards both work again."""
    group = bench.new_group()
    first = await own(bench.store, group, "0", "a")
    checkpoint = await store_checkpoint(bench.store, group, update_of(7, None))
    member = await announce(bench.store, group, Member(owner_id="a", incarnation="1"))
    async with losing(bench, None):
        claim = await claim_one(bench.store, group, "0", "a", first.etag)
        update = await bench.store.update_checkpoint(group, update_of(8, checkpoint))
        membership = await bench.store.announce_member(group, member)
        withdrawal = await bench.store.withdraw_member(group, member)
        record = await bench.store.write_record(group, GroupRecord(name="plan", content=b"1"))
        outcomes = {
            "a claim": claim.outcome,
            "a checkpoint": update.outcome,
            "a member record": membership.outcome,
            "a withdrawal": withdrawal,
            "a group record": record.outcome,
        }
        for name, outcome in outcomes.items():
            require(
                outcome is WriteOutcome.UNKNOWN,
                f"{name} without any answer must be unknown, never {outcome.value}",
            )
        for call in (
            bench.store.list_ownership(group),
            bench.store.list_members(group),
            bench.store.list_checkpoints(group),
            bench.store.read_checkpoint(group, "0"),
            bench.store.read_record(group, "plan"),
        ):
            try:
                await call
            except StoreUnavailableError:
                continue
            require(condition=False, sentence="a read without any answer must raise")
    held = await owners(bench.store, group)
    require(held["0"].owner_id == "a", "the store must work again once answers come again")
    await own(bench.store, group, "0", "b", held["0"].etag)
