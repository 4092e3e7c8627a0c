"""The rank of a name."""

from eventproc._core.placement.placement import by_rank, rank


def test_the_rank_of_a_name_is_fixed():
    """It is part of the protocol: processors of all versions must compute the same plan."""
    assert rank("0") == 9523843951405948789
    assert by_rank("0") == (9523843951405948789, "0")
