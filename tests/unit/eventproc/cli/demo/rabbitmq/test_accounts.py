"""The accounts of the demo with RabbitMQ: what they count, and what they take as explained."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.cli.demo.rabbitmq.accounts import Accounts, make_accounts
from eventproc.cli.demo.rabbitmq.journal import Call

CUSTOMER = "customer-000"


def call(writer, entered, left, *numbers, queue="0"):
    """Return a call that handled these orders of one customer."""
    orders = tuple((CUSTOMER, number) for number in numbers)
    return Call(writer=writer, queue=queue, entered_ns=entered, left_ns=left, orders=orders)


def wrong(accounts):
    """Return the counts that are not zero, but for the orders themselves."""
    names = Accounts.__slots__[2:]
    return {name: getattr(accounts, name) for name in names if getattr(accounts, name)}


@pytest.mark.parametrize(
    ("published", "calls", "expected"),
    [
        (2, [call("a", 1, 2, 0, 1)], {}),
        (2, [call("a", 1, 2, 0), call("b", 2, 3, 1)], {}),
        (3, [call("a", 1, 2, 0, 1)], {"lost": 1}),
        (2, [call("a", 1, 2, 1), call("a", 3, 4, 0)], {"out_of_order": 2}),
        (3, [call("a", 1, 2, 0, 2), call("a", 3, 4, 1)], {"out_of_order": 2}),
        (1, [call("a", 1, 2, 0), call("killed", 3, 4, 0)], {"duplicates": 1}),
        (
            1,
            [call("a", 1, 2, 0), call("b", 3, 4, 0)],
            {"duplicates": 1, "duplicates_unexplained": 1},
        ),
        (0, [call("a", 1, 4), call("b", 3, 5)], {"overlaps": 1, "overlaps_unexplained": 1}),
        (0, [call("a", 1, 4), call("b", 4, 5)], {}),
        (0, [call("a", 1, 4), call("a", 3, 5)], {}),
        (0, [call("a", 1, 4), call("b", 3, 5, queue="1")], {}),
        (0, [call("a", 1, None), call("b", 3, 5)], {"overlaps": 1, "overlaps_unexplained": 1}),
        (0, [call("killed", 1, None), call("b", 50, 55)], {}),
        (
            0,
            [call("killed", 1, None), call("b", 49, 55)],
            {"overlaps": 1, "overlaps_unexplained": 1},
        ),
        (0, [call("frozen", 1, 45), call("b", 30, 31)], {"overlaps": 1}),
        (0, [call("b", 1, 45), call("frozen", 30, 31)], {"overlaps": 1}),
        (
            0,
            [call("frozen", 1, 10), call("b", 9, 31)],
            {"overlaps": 1, "overlaps_unexplained": 1},
        ),
        (
            0,
            [call("frozen", 40, 50), call("b", 41, 60)],
            {"overlaps": 1, "overlaps_unexplained": 1},
        ),
        (1, [call("killed", 1, 2, 0), call("killed", 3, 4, 0)], {"duplicates": 1}),
        (1, [call("frozen", 1, 2, 0), call("frozen", 43, 44, 0)], {"duplicates": 1}),
    ],
)
def test_accounts_name_each_kind_of_fault_and_no_other(published, calls, expected):
    """One process was killed at 50, another was suspended from 10 to 40."""
    accounts = make_accounts(
        {CUSTOMER: published}, calls, killed={"killed": 50}, frozen=[("frozen", 10, 40)]
    )

    assert wrong(accounts) == expected
    assert accounts.published == published


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.lists(st.integers(0, 6), max_size=4)), max_size=8)
)
def test_accounts_agree_with_counting_one_by_one(handled):
    """Each order is handled or lost; each delivery beyond the first is a duplicate."""
    calls = [call(writer, 2 * n, 2 * n + 1, *orders) for n, (writer, orders) in enumerate(handled)]
    times = Counter(number for _, orders in handled for number in orders)
    accounts = make_accounts({CUSTOMER: 7}, calls)

    assert (accounts.published, accounts.handled, accounts.lost) == (7, len(times), 7 - len(times))
    assert accounts.duplicates == times.total() - len(times)
    assert accounts.overlaps == 0
    assert (accounts.out_of_order == 0) is (list(times) == list(range(len(times))))
