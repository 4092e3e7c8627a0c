"""Which changes of status are allowed, and which processor makes them."""

from itertools import product

import pytest

from eventproc.core.ownership.member_status import CHANGES, FENCED_FROM, OwnRecord
from eventproc.models import Member, MemberStatus

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


def test_only_another_processor_writes_dead():
    """And over any other status."""
    assert not any(MemberStatus.DEAD in after for after in CHANGES.values())
    assert frozenset(CHANGES) == FENCED_FROM == set(MemberStatus) - {MemberStatus.DEAD}
