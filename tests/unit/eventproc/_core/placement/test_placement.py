"""What a placement sees of a group, and the rank of a name."""

import pytest

from eventproc._core.placement.placement import MemberFacts, by_rank, rank
from eventproc.models import Member
from tests.unit.eventproc._core.placement.states import state


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


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), 0.0, -1.0, "heavy"])
def test_a_weight_that_is_no_positive_number_counts_as_one(weight):
    """It comes from a damaged record of another member, and must not end this one's plans."""
    damaged = Member(owner_id="a", incarnation="1", weight=weight)

    assert MemberFacts.of(damaged) == MemberFacts()


def test_an_endless_number_in_a_name_is_no_ordinal():
    """Python converts no number of thousands of digits."""
    assert MemberFacts.of_name("a-" + "1" * 5000) == MemberFacts()


def test_the_rank_of_a_name_is_fixed():
    """It is part of the protocol: processors of all versions must compute the same plan."""
    assert rank("0") == 9523843951405948789
    assert by_rank("0") == (9523843951405948789, "0")
