"""What a placement sees of a group."""

from eventproc.core.placement.state import MemberFacts
from eventproc.models import Member
from tests.unit.eventproc.core.placement.states import state


def test_a_member_record_says_what_a_placement_may_know():
    """A member with a record is no foreign one."""
    record = Member(
        owner_id="a", incarnation="1", weight=2.0, capacity=3, ordinal=4, deployment_id="5"
    )

    assert MemberFacts.of(record) == MemberFacts(
        weight=2.0, capacity=3, ordinal=4, deployment_id="5", is_foreign=False
    )


def test_held_resources_are_counted_for_members():
    """Not for owners that leave, and not what is no resource of the group."""
    group = state(3, "a:0,1,7 gone:2", a=MemberFacts(), b=MemberFacts())

    assert group.held_count_by_member == {"a": 2, "b": 0}
