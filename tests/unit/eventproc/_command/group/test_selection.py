"""Which rows of a view are shown, and in which order."""

import pytest

from eventproc._command.group.watch import RowOrder, select
from tests.unit.eventproc._command.group.views import group_view, partition, resources_view

VIEW = group_view(
    partition(0, "host-1", lag=5, age_s=1),
    partition(1, None, lag=70, age_s=90),
    partition(2, "host-12", lag=9, age_s=30),
    partition(11, "Host-2", lag=9, age_s=30),
)


def ids(view):
    """Return the ids of a view's partitions."""
    return [row.partition_id for row in view.partitions]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (RowOrder.PARTITION, ["0", "1", "2", "11"]),
        (RowOrder.LAG, ["1", "2", "11", "0"]),
        (RowOrder.OWNER, ["1", "11", "0", "2"]),
        (RowOrder.CHECKPOINT, ["1", "2", "11", "0"]),
    ],
)
def test_rows_are_sorted_and_equal_ones_stay_ordered_by_partition(order, expected):
    """Lag and age begin with the largest, owners with partitions that have none."""
    assert ids(select(VIEW, order, "")) == expected


def test_by_lag_a_damaged_checkpoint_comes_first():
    """Its partition is not served, whatever its lag is."""
    view = group_view(partition(0, lag=9), partition(1, lag=None, error="damaged"))

    assert ids(select(view, RowOrder.LAG, "")) == ["1", "0"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["0", "1", "2", "11"]),
        ("1", ["0", "1", "2"]),  # the partition 1, and owners with a 1 in their names
        ("11", ["11"]),
        ("HOST-1", ["0", "2"]),
        ("host-2", ["11"]),
        ("unowned", ["1"]),
        ("nothing", []),
    ],
)
def test_a_text_selects_one_partition_and_owners_that_contain_it(text, expected):
    """In upper or lower case; the id of a partition must be the whole text."""
    assert ids(select(VIEW, RowOrder.PARTITION, text)) == expected


def test_resources_are_selected_and_sorted_by_their_names():
    """Part of a name is enough, unlike the id of a partition."""
    view = resources_view("sms/b", "sms/a", "mail/a")

    assert ids(select(view, RowOrder.PARTITION, "SMS/")) == ids(resources_view("sms/a", "sms/b"))


def test_the_lag_of_a_selection_is_that_of_its_partitions():
    """So the row of totals fits the rows above it."""
    assert select(VIEW, RowOrder.LAG, "host-1").lag == 14
