"""Which changes of status are allowed, and which processor makes them."""

from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest

from eventproc._core.ownership.members import CHANGES, OwnRecord, member_step
from eventproc.models import Member, MembershipSnapshot, MemberStatus
from tests.unit.eventproc._core.ownership.listings import NOW, RULES

CHANGED = {
    (MemberStatus.STANDBY, MemberStatus.ACTIVE),
    (MemberStatus.STANDBY, MemberStatus.LEAVING),
    (MemberStatus.STANDBY, MemberStatus.RESTARTING),
    (MemberStatus.ACTIVE, MemberStatus.LEAVING),
    (MemberStatus.ACTIVE, MemberStatus.RESTARTING),
}


@pytest.mark.parametrize(("before", "after"), list(product(CHANGES, MemberStatus)))
def test_a_processor_changes_its_status_only_towards_its_end(before, after):
    """A change that is not allowed leaves the record as it is."""
    own = OwnRecord(member=Member(owner_id="a", incarnation="1", status=before), entered_at_s=0.0)
    expected = after if (before, after) in CHANGED else before

    assert own.changed_to(after).member.status is expected


@pytest.mark.parametrize(
    ("answer_within_s", "silent_s", "yields"),
    [(12, 20, False), (12, 20.1, True), (30, 30, False), (30, 30.1, True)],
)
def test_a_processor_yields_if_it_was_silent_while_a_newcomer_may_have_waited(
    answer_within_s, silent_s, yields
):
    """A newcomer waits for an answer, and renews its record after a third of the expiration."""
    own = OwnRecord(
        member=Member(owner_id="me", incarnation="1"),
        entered_at_s=0.0,
        sent_at_s=1000.0,
        silent_s=silent_s,
        answer_within=timedelta(seconds=answer_within_s),
    )
    newcomer = replace(own.member, incarnation="0", etag="2", last_modified=NOW)
    step = member_step(
        own,
        MembershipSnapshot(members=(newcomer,), as_of=NOW),
        RULES,
        1000.0,
        asked_at_s=1000.0,
        owns_something=False,
        is_trusted=True,
    )

    assert (step.yields_because is not None) is yields
