"""Clauses on concurrency and time: races, listings during writes, many records, the clock."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from eventproc.models import (
    ConsumerGroup,
    Member,
    MembershipSnapshot,
    OwnershipClaim,
    OwnershipSnapshot,
    WriteOutcome,
)
from eventproc.testing.store_contract.bench import (
    Bench,
    claim_one,
    own,
    owners,
    read_back,
    require,
    store_checkpoint,
    update_of,
)

WRITERS = 8
PARTITIONS = 16


def one_winner(outcomes: Sequence[WriteOutcome]) -> bool:
    """Whether one was won and all others were lost."""
    return sorted(outcome.value for outcome in outcomes) == ["lost"] * (len(outcomes) - 1) + ["won"]


async def claims_have_one_winner(bench: Bench) -> None:
    """Of many claims of one partition on one etag exactly one is won, in every round."""
    group = bench.new_group()
    etag = None
    for _ in range(bench.rounds):
        results = await asyncio.gather(
            *(
                claim_one((bench.store, bench.other)[writer % 2], group, "0", f"r{writer}", etag)
                for writer in range(WRITERS)
            )
        )
        outcomes = [result.outcome for result in results]
        require(
            one_winner(outcomes),
            "of many claims on one etag exactly one must win, not "
            f"{[outcome.value for outcome in outcomes]}",
        )
        winner = next(result for result in results if result.outcome is WriteOutcome.WON)
        record = (await owners(bench.store, group))["0"]
        require(record == winner.ownership, "what is stored must be the winner's record")
        etag = record.etag


async def first_writes_have_one_winner(bench: Bench) -> None:
    """Of many first writes of one record exactly one is won."""
    for number in range(bench.rounds):
        group = bench.new_group()
        stores = [(bench.store, bench.other)[writer % 2] for writer in range(WRITERS)]
        if number % 3 == 0:
            claims = await asyncio.gather(
                *(claim_one(s, group, "0", f"r{writer}", None) for writer, s in enumerate(stores))
            )
            outcomes = [result.outcome for result in claims]
        elif number % 3 == 1:
            updates = await asyncio.gather(
                *(
                    s.update_checkpoint(group, update_of(1, None, writer=f"r{writer}"))
                    for writer, s in enumerate(stores)
                )
            )
            outcomes = [result.outcome for result in updates]
        else:
            announcements = await asyncio.gather(
                *(
                    s.announce_member(group, Member(owner_id="a", incarnation=str(writer)))
                    for writer, s in enumerate(stores)
                )
            )
            outcomes = [result.outcome for result in announcements]
        require(
            one_winner(outcomes),
            "of many first writes of one record exactly one must win, not "
            f"{[outcome.value for outcome in outcomes]}",
        )


async def checkpoints_have_one_winner(bench: Bench) -> None:
    """Of many updates that replace one checkpoint exactly one is won, and its state is stored."""
    group = bench.new_group()
    checkpoint = await store_checkpoint(bench.store, group, update_of(0, None))
    for number in range(1, bench.rounds + 1):
        results = await asyncio.gather(
            *(
                (bench.store, bench.other)[writer % 2].update_checkpoint(
                    group,
                    update_of(
                        number,
                        checkpoint,
                        writer=f"r{writer}",
                        state=f"r{writer}".encode() if writer % 3 else None,
                    ),
                )
                for writer in range(WRITERS)
            )
        )
        outcomes = [result.outcome for result in results]
        require(
            one_winner(outcomes),
            "of many updates that replace one checkpoint exactly one must win, not "
            f"{[outcome.value for outcome in outcomes]}",
        )
        winner = next(result for result in results if result.outcome is WriteOutcome.WON)
        checkpoint = await read_back(bench.other, group)
        require(checkpoint == winner.checkpoint, "what is stored must be what the winner wrote")


async def listing_stands_in_the_crowd(bench: Bench) -> None:
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


async def store_tells_its_time(bench: Bench) -> None:
    """``as_of`` and ``last_modified`` are one clock: a record is dated between two listings."""
    group = bench.new_group()

    async def ownership_as_of() -> tuple[datetime | None, timedelta]:
        snapshot: OwnershipSnapshot = await bench.other.list_ownership(group)
        return snapshot.as_of, snapshot.resolution

    async def membership_as_of() -> tuple[datetime | None, timedelta]:
        snapshot: MembershipSnapshot = await bench.other.list_members(group)
        return snapshot.as_of, snapshot.resolution

    async def claim_time() -> datetime:
        return (await own(bench.store, group, "0", "a")).last_modified

    async def announce_time() -> datetime:
        result = await bench.store.announce_member(group, Member(owner_id="a", incarnation="1"))
        assert result.member is not None
        assert result.member.last_modified is not None
        return result.member.last_modified

    await _dated_between(ownership_as_of, claim_time)
    await _dated_between(membership_as_of, announce_time)


async def _dated_between(
    as_of: Callable[[], Awaitable[tuple[datetime | None, timedelta]]],
    write: Callable[[], Awaitable[datetime]],
) -> None:
    before, resolution = await as_of()
    written = await write()
    after, _ = await as_of()
    require(before is not None and after is not None, "as_of is missing: a store tells its time")
    assert before is not None
    assert after is not None
    require(before.utcoffset() is not None, "as_of must be an aware time")
    require(timedelta(0) <= resolution <= timedelta(seconds=2), "times coarser than 2 s are no use")
    require(before <= after, f"as_of must not go back between listings: {before}, {after}")
    require(
        before - resolution <= written <= after + resolution,
        f"a record written between listings of {before} and {after} must not be dated {written}",
    )


async def renewal_makes_a_record_young(bench: Bench) -> None:
    """A record ages until it is written, and a renewal updates its time."""
    group = bench.new_group()
    first = await own(bench.store, group, "0", "a")
    snapshot = await bench.store.list_ownership(group)
    wait = snapshot.resolution + timedelta(milliseconds=50)
    await asyncio.sleep(wait.total_seconds())
    later = await bench.other.list_ownership(group)
    require(
        later.as_of > snapshot.as_of and later.ownerships[0].last_modified == first.last_modified,
        "the store's time must pass, while an unchanged record keeps its last_modified",
    )
    renewed = await own(bench.store, group, "0", "a", first.etag)
    require(renewed.last_modified > first.last_modified, "a renewal must update last_modified")


async def groups_may_be_read_at_once(bench: Bench) -> None:
    """Methods may be called concurrently: many calls in flight each get their own answer."""
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


CLAUSES = (
    claims_have_one_winner,
    first_writes_have_one_winner,
    checkpoints_have_one_winner,
    listing_stands_in_the_crowd,
    listing_has_every_record,
    store_tells_its_time,
    renewal_makes_a_record_young,
    groups_may_be_read_at_once,
)
