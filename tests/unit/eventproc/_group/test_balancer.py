"""One cycle of the balancer: what it claims and hands over, and what it leaves unchanged."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from eventproc import Even, Ring
from eventproc._group.compatibility import Compatibility
from eventproc.errors import ConfigurationError, StoreUnavailableError
from eventproc.models import ClaimResult, MemberResult, MemberStatus, WriteOutcome
from tests.scenarios.balancer_fixture import run
from tests.scenarios.group_setup import seconds


def test_a_cycle_under_way_claims_nothing_for_a_leaving_processor():
    """It would have to hand the partitions over again."""

    async def scenario(fixture):
        await fixture.enter()
        fixture.store.delay_s = 1.0
        polling = asyncio.create_task(fixture.poll())
        await seconds(0.8)
        left = await fixture.leave()
        await polling

        assert fixture.etags == {}
        assert left.actions.moves.hand_overs == {}

    run(scenario)


def test_a_cycle_under_way_does_not_write_a_status_that_is_being_written():
    """One of the two writes would be refused, and read and repeated while the processor stops."""

    async def scenario(fixture):
        await fixture.enter()
        sent = []
        announce = fixture.store.announce_member

        async def announce_slowly(group, member):
            sent.append(member.status)
            await seconds(1)
            return await announce(group, member)

        fixture.store.announce_member = announce_slowly
        fixture.store.delay_s = 1.0
        polling = asyncio.create_task(fixture.poll())
        await seconds(0.8)
        await fixture.membership.change_to(MemberStatus.LEAVING)
        await polling

        assert sent == [MemberStatus.LEAVING]

    run(scenario)


def test_a_held_partition_with_an_old_record_is_not_handed_over():
    """A held partition keeps its owner after its record has expired, until it is claimed."""

    async def scenario(fixture):
        await fixture.enter()
        await fixture.poll()
        for number in range(8):
            await fixture.join(f"b{number}")
        records = fixture.setup.account.records(fixture.setup.group).ownership_by_partition
        record = records["0"]
        records["0"] = replace(record, last_modified=record.last_modified - timedelta(hours=1))
        await fixture.poll()
        result = await fixture.poll()

        assert result.actions.moves.hand_overs == {}
        assert result.actions.plan.owner_by_partition == {"0": "me"}

    run(scenario)


def test_a_partition_that_is_being_handed_over_is_not_claimed():
    """Its record still names this processor until the write with the new owner takes effect."""

    async def scenario(fixture):
        await fixture.enter()
        await fixture.record("0", "me")
        before = fixture.etags
        await fixture.poll(busy=["0"])

        assert fixture.etags == before
        assert (await fixture.poll()).claimed == ("0",)

    run(scenario)


def test_leaving_hands_over_a_partition_that_was_handed_to_us_but_not_started():
    """It has no pump to drain, so one write names the next owner."""

    async def scenario(fixture):
        await fixture.join("b")
        await fixture.enter()
        await fixture.record("0", "me")
        await fixture.leave()

        assert fixture.setup.owners() == {"0": "b"}

    run(scenario)


def test_a_partition_of_a_live_owner_that_lets_nothing_go_is_stolen_after_handoff_timeout():
    """Its process hangs: it renews its leases, and does not follow the plan."""

    async def scenario(fixture):
        stolen_at_s = []
        for at_s in range(0, 90, 5):
            await fixture.join("b")
            for partition_id in fixture.partition_ids:
                await fixture.record(partition_id, "b")
            if at_s == 0:
                await fixture.enter()
            stolen_at_s += [at_s] * len((await fixture.poll()).stolen)
            await seconds(4.7)

        handoff_s = fixture.config.handoff_timeout.total_seconds()
        assert stolen_at_s
        assert handoff_s <= stolen_at_s[0] <= handoff_s + 10

    run(scenario, partition_count=2)


def test_a_release_of_unknown_outcome_does_not_count_as_done():
    """The processor stays in the group until a later poll shows that it owns nothing."""

    async def scenario(fixture):
        await fixture.enter()
        await fixture.record("0", "me")
        claim = fixture.store.claim_ownership

        async def lose_answer(group, claims):
            results = await claim(group, claims)
            return [replace(r, outcome=WriteOutcome.UNKNOWN, ownership=None) for r in results]

        fixture.store.claim_ownership = lose_answer
        unknown = await fixture.leave()
        proved = await fixture.leave()

        assert fixture.setup.owners() == {"0": None}
        assert (unknown.actions.is_balanced, proved.actions.is_balanced) == (False, True)

    run(scenario)


def test_a_partition_of_a_new_processor_with_this_owner_id_is_not_released():
    """It joined after the member records were read, and claimed before the ownership records."""

    async def scenario(fixture):
        await fixture.enter()
        await fixture.membership.change_to(MemberStatus.LEAVING)
        fixture.replace_between_listings()
        left = await fixture.balancer.cycle(fixture.partition_ids, (), ())

        assert left.actions.transfers
        assert fixture.setup.owners() == {"0": "me"}

    run(scenario)


def test_a_partition_of_a_new_processor_with_this_owner_id_is_not_claimed():
    """This process was suspended between its two listings, and replaced meanwhile."""

    async def scenario(fixture):
        await fixture.enter()
        fixture.replace_between_listings()
        late = await fixture.poll()

        assert late.actions.moves.claims
        assert late.claimed == ()
        assert fixture.leases.held == frozenset()
        assert fixture.etags == {"0": late.actions.moves.claims[0].expected_etag}

    run(scenario)


def test_a_partition_whose_handler_may_still_run_is_not_released():
    """Its lease is lost, but its record still names this processor."""

    async def scenario(fixture):
        await fixture.enter()
        for partition_id in fixture.partition_ids:
            await fixture.record(partition_id, "me")
        before = fixture.etags
        await fixture.leave(running={"0"})

        assert fixture.etags["0"] == before["0"]
        assert fixture.etags["1"] != before["1"]

    run(scenario, partition_count=2)


def test_nothing_is_claimed_if_the_own_member_record_could_not_be_written():
    """The others do not count this processor then; the next poll decides again."""

    async def scenario(fixture):
        await fixture.enter()
        announce = fixture.store.announce_member

        async def refuse(_group, _member):
            return MemberResult(outcome=WriteOutcome.LOST)

        fixture.store.announce_member = refuse
        del fixture.setup.account.records(fixture.setup.group).member_by_owner["me"]
        refused = await fixture.poll()
        fixture.store.announce_member = announce
        written = await fixture.poll()

        assert (refused.claimed, written.claimed) == ((), ("0",))

    run(scenario)


def test_a_claim_of_unknown_outcome_is_logged_with_the_stores_reason(caplog):
    """So that an operator need not look for it elsewhere."""

    async def scenario(fixture):
        async def unknown(_group, claims):
            error = StoreUnavailableError("the disk is busy")
            return [
                ClaimResult(claim=claim, outcome=WriteOutcome.UNKNOWN, error=error)
                for claim in claims
            ]

        fixture.store.claim_ownership = unknown
        for _ in range(10):
            await fixture.poll()
        [line] = [
            vars(record)
            for record in caplog.records
            if (vars(record).get("event"), record.levelname) == ("claim_outcome_unknown", "WARNING")
        ]

        assert set(line["partition_ids"]) <= set(fixture.partition_ids)
        assert line["error"] == "the disk is busy"

    run(scenario)


@pytest.mark.parametrize("has_foreign", [False, True])
def test_beside_a_processor_of_an_azure_sdk_leases_are_renewed_sooner(has_foreign):
    """Its expiration may be shorter than ours; the record is renewed before a third of 60 s."""

    async def scenario(fixture):
        if has_foreign:
            await fixture.record("0", "azure")
        else:
            await fixture.join("b")
        await fixture.enter()
        await fixture.poll()
        etags = fixture.etags
        await seconds(18)
        await fixture.leases.renew_due()

        assert (fixture.etags != etags) is has_foreign

    run(scenario, partition_count=2)


@pytest.mark.parametrize("placement", [Even(), Ring()])
def test_processors_of_an_azure_sdk_are_members_of_a_group_that_shares_evenly_alone(placement):
    """They would keep their even share whatever the placement says."""

    async def scenario(fixture):
        await fixture.record("0", "azure")
        compatibility = Compatibility(
            group=fixture.setup.group,
            member=fixture.membership.own.member,
            placement=placement,
            expiration=fixture.config.ownership_expiration,
        )
        if placement.admits_foreign:
            await compatibility.check(fixture.store)
            return
        with pytest.raises(ConfigurationError, match=r"'Ring'.*share evenly \(azure\)"):
            await compatibility.check(fixture.store)

    run(scenario, placement=placement)
