"""Member records at the start: what is repeated."""

import pytest

from eventproc.errors import StoreError, StoreRejectedError, StoreUnavailableError
from eventproc.models import MemberResult, WriteOutcome
from tests.scenarios.membership_fixture import MembershipFixture


@pytest.mark.parametrize(
    ("error", "attempt_count"),
    [(StoreRejectedError("no such table"), 1), (StoreUnavailableError("no answer"), 5)],
    ids=["rejected", "unavailable"],
)
async def test_a_start_repeats_a_first_write_only_while_that_may_help(error, attempt_count):
    """What the store refuses, an operator has to mend; either way its own message is raised."""
    fixture = await MembershipFixture.opened()
    written = []

    async def fail(_group, member):
        written.append(member.incarnation)
        return MemberResult(outcome=WriteOutcome.UNKNOWN, error=error)

    fixture.store.announce_member = fail  # type: ignore[method-assign]
    with pytest.raises(StoreError, match=str(error)) as caught:
        await fixture.entered("1")

    assert isinstance(caught.value, type(error))
    assert written == ["1"] * attempt_count
    assert fixture.incarnation() is None
