"""Clauses on ownership: claim, renewal, hand-over and release are one conditional write.

Relied on by: eventproc/_group/leases.py
"""

from contextlib import suppress
from dataclasses import replace
from functools import partial

from eventproc.errors import ConfigurationError
from eventproc.models import CheckpointUpdate, ConsumerGroup, OwnershipClaim, WriteOutcome
from eventproc.testing._clauses import require
from eventproc.testing._store_contract.bench import (
    Bench,
    claim_one,
    own,
    owners,
    require_lost,
    require_present,
)

UNUSUAL_NAMES = (
    "$Default",
    "überwachung-東京-🚀",
    "50%25 + #1?a=b&c='d' \"e\"",
    "a.b~c_d-e",
    "x" * 128,
)
UNUSUAL_OWNER_IDS = (
    "b6b8b3a0-7a6e-4f8e-9d0a-0c4f0b1f6f00",
    "Zoë's laptop/東京 50%25",
    "CASE",
    "case",
    "y" * 128,
    "🚀" * 64,
)


async def empty_group_has_no_ownership(bench: Bench) -> None:
    """A new group has no ownership records, and an empty list of claims has no results."""
    group = bench.new_group()
    require(await owners(bench.store, group) == {}, "a new group must have no ownership")
    require(
        list(await bench.store.claim_ownership(group, [])) == [],
        "no claims must have no results",
    )


async def first_claim_creates_the_record(bench: Bench) -> None:
    """A claim without an etag on a partition without a record is won, and every store lists it."""
    group = bench.new_group()
    mine = await own(bench.store, group, "0", "a")
    require(mine.last_modified.utcoffset() is not None, "last_modified must be an aware time")
    require(
        await owners(bench.other, group) == {"0": mine},
        "another process must list a won claim exactly as it was answered",
    )


async def first_claim_only_without_record(bench: Bench) -> None:
    """A claim without an etag is lost if a record exists, even a released or an own one."""
    group = bench.new_group()
    mine = await own(bench.store, group, "0", "a")
    for owner_id in ("b", "a"):
        result = await claim_one(bench.other, group, "0", owner_id, None)
        require_lost(result.outcome, "a claim that expects no record must be lost where one exists")
    require(await owners(bench.store, group) == {"0": mine}, "a lost claim must change nothing")
    released = await own(bench.store, group, "0", None, mine.etag)
    result = await claim_one(bench.other, group, "0", "b", None)
    require_lost(
        result.outcome,
        "a released record is still a record: a claim that expects none must be lost",
    )
    require(await owners(bench.store, group) == {"0": released}, "a lost claim changes nothing")


async def claim_needs_the_etag_that_is_stored(bench: Bench) -> None:
    """A claim on an outdated etag is lost, even by the owner, and changes nothing."""
    group = bench.new_group()
    first = await own(bench.store, group, "0", "a")
    second = await own(bench.other, group, "0", "b", first.etag)
    for owner_id in ("a", "c", "b", None):
        result = await claim_one(bench.store, group, "0", owner_id, first.etag)
        require_lost(
            result.outcome, "a claim on an outdated etag must be lost, even for the present owner"
        )
        require(
            result.ownership in {None, second},
            "a lost claim may only show the record that is stored",
        )
    require(await owners(bench.store, group) == {"0": second}, "a lost claim must change nothing")


async def claim_with_etag_needs_a_record(bench: Bench) -> None:
    """A claim on an etag is lost if there is no record, and creates none."""
    group = bench.new_group()
    elsewhere = await own(bench.store, group, "0", "a")
    result = await claim_one(bench.store, group, "1", "a", elsewhere.etag)
    require_lost(result.outcome, "a claim on a record that does not exist must be lost")
    require(set(await owners(bench.store, group)) == {"0"}, "a lost claim must create no record")


async def every_write_changes_the_etag(bench: Bench) -> None:
    """Writing the same owner again is a renewal: new etag, time never going back."""
    group = bench.new_group()
    record = await own(bench.store, group, "0", "a")
    seen = {record.etag}
    for _ in range(20):
        renewed = await own(bench.store, group, "0", "a", record.etag)
        require(renewed.etag not in seen, "a renewal must get an etag that was never given before")
        require(
            renewed.last_modified >= record.last_modified,
            "a renewal must not make the record older",
        )
        seen.add(renewed.etag)
        record = renewed
    require(
        await owners(bench.other, group) == {"0": record},
        "the listing must show the last renewal, etag and time",
    )


async def epoch_is_stored_with_the_owner(bench: Bench) -> None:
    """Each write stores its epoch, also with a release; a write without one erases it."""
    group = bench.new_group()
    etag = None
    for owner_id, epoch in (("a", 1_800_000_000_000), ("b", 7), (None, 7), ("a", 0)):
        claim = OwnershipClaim(partition_id="0", owner_id=owner_id, expected_etag=etag, epoch=epoch)
        (result,) = await bench.store.claim_ownership(group, [claim])
        record = require_present(result.ownership, "a won claim must come with its record")
        require(record.epoch == epoch, f"the epoch must be stored as claimed, not {record.epoch}")
        listed = await owners(bench.other, group)
        require(listed == {"0": record}, "the listing must show the epoch of the last write")
        etag = record.etag


async def each_claim_stands_alone(bench: Bench) -> None:
    """Each of several claims in one call is won or lost by itself; results are in their order."""
    group = bench.new_group()
    first = await own(bench.other, group, "1", "b")
    claims = [
        OwnershipClaim(partition_id=str(number), owner_id="a", expected_etag=None)
        for number in range(4)
    ]
    claims.append(OwnershipClaim(partition_id="4", owner_id="a", expected_etag=first.etag))
    results = await bench.store.claim_ownership(group, claims)
    require([result.claim for result in results] == claims, "results must come in claims' order")
    outcomes = [result.outcome for result in results]
    won, lost = WriteOutcome.WON, WriteOutcome.LOST
    require(
        outcomes == [won, lost, won, won, lost],
        f"each claim must be won or lost on its own, not {[o.value for o in outcomes]}",
    )
    held = {key: record.owner_id for key, record in (await owners(bench.store, group)).items()}
    require(
        held == {"0": "a", "1": "b", "2": "a", "3": "a"},
        f"what is listed must be what was won, not {held}",
    )


async def release_keeps_the_record(bench: Bench) -> None:
    """A released partition is listed without an owner; the next owner claims it by its etag."""
    group = bench.new_group()
    mine = await own(bench.store, group, "0", "a")
    released = await own(bench.store, group, "0", None, mine.etag)
    require(
        await owners(bench.other, group) == {"0": released},
        "a released record must be listed with owner_id None",
    )
    theirs = await own(bench.other, group, "0", "b", released.etag)
    require(
        await owners(bench.store, group) == {"0": theirs},
        "a released partition must be claimable by the etag of its release",
    )


async def hand_over_names_the_next_owner(bench: Bench) -> None:
    """An owner may write another owner id; the new owner lists it and renews by its etag."""
    group = bench.new_group()
    mine = await own(bench.store, group, "0", "a")
    given = await own(bench.store, group, "0", "b", mine.etag)
    require(
        await owners(bench.other, group) == {"0": given},
        "a hand-over must show the new owner to every process",
    )
    result = await claim_one(bench.store, group, "0", "a", mine.etag)
    require_lost(result.outcome, "after a hand-over the former owner must lose")
    await own(bench.other, group, "0", "b", given.etag)


async def groups_do_not_see_each_other(bench: Bench) -> None:
    """The same partition in another namespace, hub or group is another record."""
    group = bench.new_group("g")
    neighbours = [
        replace(group, name="g1"),
        replace(group, name="$Default"),
        replace(group, eventhub_name="hub2"),
        replace(group, fully_qualified_namespace="x" + group.fully_qualified_namespace),
    ]
    mine = await own(bench.store, group, "0", "a")
    for neighbour in neighbours:
        seen = await owners(bench.store, neighbour)
        require(seen == {}, f"a group must not see the records of another one: {seen}")
        await own(bench.store, neighbour, "0", "b")
    seen = await owners(bench.store, group)
    require(seen == {"0": mine}, f"a group must see its own records as they were written: {seen}")


async def group_names_ignore_case(bench: Bench) -> None:
    """Names that differ only in case mean the same group, as they do for Event Hubs."""
    group = bench.new_group("$Default")
    shouted = ConsumerGroup(
        fully_qualified_namespace=group.fully_qualified_namespace.upper(),
        eventhub_name=group.eventhub_name.upper(),
        name=group.name.upper(),
    )
    mine = await own(bench.store, group, "0", "a")
    require(
        await owners(bench.other, shouted) == {"0": mine},
        "names that differ only in case must mean the same group",
    )
    result = await claim_one(bench.other, shouted, "0", "b", None)
    require_lost(result.outcome, "a claim under another case must meet the record")


async def unusual_names_come_back_as_given(bench: Bench) -> None:
    """Hubs, groups, partitions and owners may have any printable name without slashes."""
    for name in UNUSUAL_NAMES:
        group = replace(bench.new_group(name), eventhub_name=name)
        mine = await own(bench.store, group, name, "a")
        require(
            await owners(bench.other, group) == {name: mine},
            f"names like {name!r} must come back as given",
        )
    group = bench.new_group()
    for number, owner_id in enumerate(UNUSUAL_OWNER_IDS):
        await own(bench.store, group, str(number), owner_id)
    held = {key: record.owner_id for key, record in (await owners(bench.other, group)).items()}
    require(
        held == {str(number): owner_id for number, owner_id in enumerate(UNUSUAL_OWNER_IDS)},
        f"owner ids must come back as given, not as {held}",
    )


async def slashes_are_refused(bench: Bench) -> None:
    """A name that would split a record's key is refused before anything is written."""
    for name in ("a/b", "a\\b", "", " a", "a\n"):
        accepted = False
        with suppress(ConfigurationError):
            bench.new_group(name or " ")
            accepted = True
        require(not accepted, f"a group named {name!r} must be refused")
    group = bench.new_group()
    for partition_id in ("a/b", "a\\b", "", ".."):
        update = CheckpointUpdate(
            partition_id=partition_id, offset="1", sequence_number=1, replaces=None, writer="w"
        )
        for what, call in (
            ("a claim on", partial(claim_one, bench.store, group, partition_id, "a", None)),
            ("reading", partial(bench.store.read_checkpoint, group, partition_id)),
            ("a checkpoint of", partial(bench.store.update_checkpoint, group, update)),
        ):
            accepted = False
            with suppress(ValueError):
                await call()
                accepted = True
            require(not accepted, f"{what} partition {partition_id!r} must be refused")
    require(await owners(bench.store, group) == {}, "what was refused must not be written")
    listed = await bench.store.list_checkpoints(group)
    require(not listed, "a checkpoint that was refused must not be written")


async def a_store_that_lists_groups_names_those_with_records(bench: Bench) -> None:
    """An operator who mistyped a group's name sees it there; a store may also list none."""
    group = bench.new_group()
    require(
        group.key not in {other.key for other in await bench.store.list_groups()},
        "a group without records must not be listed",
    )
    await own(bench.store, group, "0", "a")
    for hub_of in (None, replace(group, name="another")):
        keys = [other.key for other in await bench.other.list_groups(hub_of)]
        require(
            not keys or keys.count(group.key) == 1,
            "a group with records must be listed exactly once",
        )
    elsewhere = replace(group, eventhub_name=f"{group.eventhub_name}-2")
    for asked, owned in ((elsewhere, group), (group, elsewhere)):
        await own(bench.store, owned, "1", "a")
        keys = [other.key for other in await bench.other.list_groups(asked)]
        require(owned.key not in keys, "a group of another hub must not be listed")
