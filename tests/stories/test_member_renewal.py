"""Member records at the start, and as session leases: what is repeated, renewed and doubted."""

import asyncio

import pytest

from eventproc.errors import StoreError, StoreRejectedError, StoreUnavailableError
from eventproc.models import LeaseMode, MemberResult, MemberStatus, WriteOutcome
from tests.stories.membership_fixture import ANSWER_WITHIN, POLL_INTERVAL, run
from tests.stories.scene import seconds


@pytest.mark.parametrize(
    ("error", "attempt_count"),
    [(StoreRejectedError("no such table"), 1), (StoreUnavailableError("no answer"), 5)],
    ids=["rejected", "unavailable"],
)
def test_a_start_repeats_a_first_write_only_while_that_may_help(error, attempt_count):
    """What the store refuses, an operator has to mend; either way its own message is raised."""

    async def scenario(fixture):
        written = []

        async def fail(_group, member):
            written.append(member.incarnation)
            return MemberResult(outcome=WriteOutcome.UNKNOWN, error=error)

        fixture.store.announce_member = fail
        with pytest.raises(StoreError, match=str(error)) as caught:
            await fixture.entered("1")

        assert isinstance(caught.value, type(error))
        assert written == ["1"] * attempt_count
        assert fixture.incarnation() is None

    run(scenario)


def test_only_a_session_is_renewed_all_the_time():
    """Without session leases the ownership records show that the processor is alive."""

    async def scenario(fixture):
        membership = await fixture.entered("1")
        before = fixture.member()
        await asyncio.wait_for(membership.keep(), 1)  # There is nothing to wait for.

        assert fixture.member() == before

    run(scenario)


@pytest.mark.parametrize(
    ("mode", "after_s", "lapse_count"),
    [
        (LeaseMode.SESSION, 55, 1),
        (LeaseMode.SESSION, 50, 0),
        (LeaseMode.PARTITION, 55, 0),
    ],
    ids=["late", "in time", "no session"],
)
def test_a_session_that_is_renewed_too_late_doubts_its_leases_once(mode, after_s, lapse_count):
    """While it was not trusted, another processor may have taken its partitions."""

    async def scenario(fixture):
        membership = fixture.membership("1", mode=mode)
        await membership.enter(answer_within=ANSWER_WITHIN, poll_interval=POLL_INTERVAL)
        trust_at_lapse = []
        membership.on_lapsed = lambda: trust_at_lapse.append(membership.trusted_until_s())
        await seconds(after_s)
        await membership.change_to(MemberStatus.ACTIVE)
        await membership.change_to(MemberStatus.ACTIVE)

        # The old trust: if leases were doubted after it is extended, a handler could slip between.
        assert trust_at_lapse == [54.0] * lapse_count

    run(scenario)
