"""The orders of the demo with RabbitMQ."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from eventproc.cli.demo.rabbitmq.orders import body_of, counts, order_in, orders


@given(st.integers(0, 3000))
def test_a_customers_orders_are_numbered_and_each_round_has_one_of_them_at_most(count):
    """So that the orders of a round may be published at the same time."""
    rounds = list(orders(count))
    by_customer = Counter(customer for round_of in rounds for customer, _ in round_of)

    assert sum(map(len, rounds)) == count
    assert by_customer == counts(count)
    for number, round_of in enumerate(rounds):
        assert len({customer for customer, _ in round_of}) == len(round_of)
        assert {order[1] for order in round_of} == {number}
    assert all(order_in(body_of(order)) == order for round_of in rounds for order in round_of)
