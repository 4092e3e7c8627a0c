"""Clauses on concurrency and time: races, listings during writes, many records, the clock.

Relied on by: eventproc/_group/balancer.py, docs/guarantees.md
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol, TypeVar

from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    ClaimResult,
    ConsumerGroup,
    GroupRecord,
    Member,
    MembershipSnapshot,
    OwnershipClaim,
    OwnershipSnapshot,
    WriteOutcome,
)
from eventproc.ports import CheckpointStore
from eventproc.testing._clauses import require
from eventproc.testing._store_contract.bench import (
    Bench,
    claim_one,
    own,
    owners,
    read_back,
    require_present,
    store_checkpoint,
    update_of,
)
from eventproc.testing._store_contract.members import announce

WRITERS = 8
PARTITIONS = 16


class Result(Protocol):
    """The result of a conditional write."""

    @property
    def outcome(self) -> WriteOutcome:
        """Whether it was won."""


R = TypeVar("R", bound=Result)


async def require_one_winner(
    bench: Bench, what: str, write: Callable[[CheckpointStore, str], Awaitable[R]]
) -> R:
    """Make a write by many writers at once; require that one wins, and return its result."""
    stores = (bench.store, bench.other)
    results = await asyncio.gather(*(write(stores[n % 2], f"r{n}") for n in range(WRITERS)))
    outcomes = sorted(result.outcome.value for result in results)
    require(
        outcomes == ["lost"] * (WRITERS - 1) + ["won"],
        f"of many {what} exactly one must win, not {outcomes}",
    )
    return next(result for result in results if result.outcome is WriteOutcome.WON)


async def claims_have_one_winner(bench: Bench) -> None:
    """Of many claims of one partition on one etag exactly one is won, in every round."""
    group = bench.new_group()
    etag = None
    for _ in range(bench.rounds):
        winner = await require_one_winner(
            bench,
            "claims on one etag",
            partial(_claim_by, etag, group),
        )
        record = (await owners(bench.store, group))["0"]
        require(record == winner.ownership, "what is stored must be the winner's record")
        etag = record.etag


async def first_writes_have_one_winner(bench: Bench) -> None:
    """Of many first writes of one record exactly one is won."""
    writes = (partial(_claim_by, None), _first_checkpoint, _first_membership, _first_record)
    for number in range(bench.rounds):
        await require_one_winner(
            bench, "first writes of one record", partial(writes[number % 4], bench.new_group())
        )


async def _claim_by(
    etag: str | None, group: ConsumerGroup, store: CheckpointStore, writer: str
) -> ClaimResult:
    return await claim_one(store, group, "0", writer, etag)


async def _first_checkpoint(group: ConsumerGroup, store: CheckpointStore, writer: str) -> Result:
    return await store.update_checkpoint(group, update_of(1, None, writer=writer))


async def _first_membership(group: ConsumerGroup, store: CheckpointStore, writer: str) -> Result:
    return await store.announce_member(group, Member(owner_id="a", incarnation=writer))


async def _first_record(group: ConsumerGroup, store: CheckpointStore, writer: str) -> Result:
    return await store.write_record(group, GroupRecord(name="plan", content=writer.encode()))


async def checkpoints_have_one_winner(bench: Bench) -> None:
    """Of many updates that replace one checkpoint exactly one is won, and its state is stored."""
    group = bench.new_group()
    checkpoint = await store_checkpoint(bench.store, group, update_of(0, None))
    for number in range(1, bench.rounds + 1):
        update = partial(_update_by, group, number, checkpoint)
        winner = await require_one_winner(bench, "updates that replace one checkpoint", update)
        checkpoint = await read_back(bench.other, group)
        require(checkpoint == winner.checkpoint, "what is stored must be what the winner wrote")


async def _update_by(
    group: ConsumerGroup, number: int, replaced: Checkpoint, store: CheckpointStore, writer: str
) -> CheckpointResult:
    state = writer.encode() if int(writer[1:]) % 3 else None
    return await store.update_checkpoint(
        group, update_of(number, replaced, writer=writer, state=state)
    )


async def listing_is_complete_during_writes(bench: Bench) -> None:
    """During writes a listing has every partition once, and only records that were written."""
    group = bench.new_group()
    claims = [
        OwnershipClaim(partition_id=str(number), owner_id="w0", expected_etag=None)
        for number in range(PARTITIONS)
    ]
    await bench.store.claim_ownership(group, claims)
    written = {f"w{number}" for number in range(4)}
    rounds_left = bench.rounds

    async def write(owner_id: str) -> None:
        while rounds_left > 0:
            held = (await bench.other.list_ownership(group)).ownerships
            await bench.other.claim_ownership(
                group,
                [
                    OwnershipClaim(
                        partition_id=record.partition_id,
                        owner_id=owner_id,
                        expected_etag=record.etag,
                    )
                    for record in held
                ],
            )

    writers = [asyncio.ensure_future(write(owner_id)) for owner_id in sorted(written)]
    try:
        while rounds_left > 0:
            listed = await owners(bench.store, group)
            rounds_left -= 1
            require(
                set(listed) == {str(number) for number in range(PARTITIONS)},
                f"a listing must have every record, also during writes: {sorted(listed)}",
            )
            require(
                {record.owner_id for record in listed.values()} <= written,
                "a listing must not show a record that was never written",
            )
    finally:
        rounds_left = 0
        await asyncio.gather(*writers)


async def listing_has_every_record(bench: Bench) -> None:
    """A listing is complete however many records there are, beyond any page size."""
    group = bench.new_group()
    names = [str(number) for number in range(bench.records)]
    results = await bench.store.claim_ownership(
        group,
        [OwnershipClaim(partition_id=name, owner_id="a", expected_etag=None) for name in names],
    )
    require(
        all(result.outcome is WriteOutcome.WON for result in results),
        "a call may claim any number of partitions",
    )
    listed = await owners(bench.other, group)
    require(
        set(listed) == set(names),
        f"a listing must be complete: {len(listed)} of {bench.records} ownership records",
    )
    require(
        listed == {r.claim.partition_id: r.ownership for r in results},
        "a record must be listed as its claim was answered, on every page",
    )


async def store_returns_its_time(bench: Bench) -> None:
    """``as_of`` and ``last_modified`` are times of one clock, so listings can date a write."""
    group = bench.new_group()

    async def claim_time() -> datetime:
        return (await own(bench.store, group, "0", "a")).last_modified

    async def announce_time() -> datetime:
        member = await announce(bench.store, group, Member(owner_id="a", incarnation="1"))
        return require_present(member.last_modified, "a member record must have a time")

    checkpoint: Checkpoint | None = None

    async def checkpoint_time() -> datetime:
        nonlocal checkpoint
        checkpoint = await store_checkpoint(bench.store, group, update_of(7, checkpoint))
        return checkpoint.last_modified

    await _dated_between(lambda: bench.other.list_ownership(group), claim_time)
    await _dated_between(lambda: bench.other.list_members(group), announce_time)
    for _ in range(2):
        await _dated_between(lambda: bench.other.list_ownership(group), checkpoint_time)


async def _dated_between(
    listing: Callable[[], Awaitable[OwnershipSnapshot | MembershipSnapshot]],
    write: Callable[[], Awaitable[datetime]],
) -> None:
    earlier = await listing()
    written = await write()
    later = await listing()
    before, after, resolution = earlier.as_of, later.as_of, earlier.resolution
    require(None not in (before, after), "as_of is missing: a store tells its time")
    require(before.utcoffset() is not None, "as_of must be an aware time")
    require(timedelta(0) <= resolution <= timedelta(seconds=2), "times coarser than 2 s are no use")
    require(before <= after, f"as_of must not go back between listings: {before}, {after}")
    require(
        before - resolution <= written <= after + resolution,
        f"a record written between listings of {before} and {after} must not be dated {written}",
    )


async def renewal_updates_the_time(bench: Bench) -> None:
    """A record ages until it is written, and a renewal updates its time."""
    group = bench.new_group()
    first = await own(bench.store, group, "0", "a")
    member = await announce(bench.store, group, Member(owner_id="a", incarnation="1"))
    snapshot = await bench.store.list_ownership(group)
    present = await bench.store.list_members(group)
    require(present.resolution == snapshot.resolution, "all listings must tell times as precisely")
    wait = snapshot.resolution + timedelta(milliseconds=50)
    await asyncio.sleep(wait.total_seconds())
    later = await bench.other.list_ownership(group)
    require(
        later.as_of > snapshot.as_of and later.ownerships[0].last_modified == first.last_modified,
        "the store's time must pass, while an unchanged record keeps its last_modified",
    )
    renewed = await own(bench.store, group, "0", "a", first.etag)
    require(renewed.last_modified > first.last_modified, "a renewal must update last_modified")
    present = await bench.other.list_members(group)
    require(set(present.members) == {member}, "an unchanged member record must keep its time")
    again = await announce(bench.store, group, member)
    require(
        require_present(again.last_modified, "a member record must have a time")
        > require_present(member.last_modified, "a member record must have a time"),
        "a renewal of a member record must update last_modified",
    )


async def groups_may_be_read_at_once(bench: Bench) -> None:
    """Methods may be called concurrently, and each call gets its own answer."""
    groups = [bench.new_group() for _ in range(PARTITIONS)]

    async def live(number: int, group: ConsumerGroup) -> None:
        mine = await own(bench.store, group, str(number), f"o{number}")
        written = await store_checkpoint(
            bench.store, group, update_of(number, None, partition_id=str(number))
        )
        require(await owners(bench.store, group) == {str(number): mine}, "answers must not mix")
        read = await read_back(bench.store, group, str(number))
        require(read == written, "answers of concurrent calls must not be mixed up")

    await asyncio.gather(*(live(number, group) for number, group in enumerate(groups)))
