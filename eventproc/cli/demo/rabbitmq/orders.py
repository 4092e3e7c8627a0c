"""The orders of the demo: each customer's are numbered, so that their order can be checked."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

CUSTOMER_COUNT: Final = 500

Order = tuple[str, int]
"""A customer, and the number of the order among that customer's, from 0."""


def orders(count: int) -> Iterator[list[Order]]:
    """Yield rounds of orders; in each round a customer has one order at most.

    The orders of a round may be published at the same time. Those of a customer stay in order if a
    round is published after the one before it was confirmed.
    """
    for number in range(-(-count // CUSTOMER_COUNT)):
        left = count - number * CUSTOMER_COUNT
        yield [(f"customer-{c:03}", number) for c in range(min(CUSTOMER_COUNT, left))]


def counts(count: int) -> Mapping[str, int]:
    """Return how many orders each customer has."""
    found: dict[str, int] = {}
    for orders_of_round in orders(count):
        for customer, number in orders_of_round:
            found[customer] = number + 1
    return found


def body_of(order: Order) -> bytes:
    """Encode an order."""
    customer, number = order
    return json.dumps({"customer": customer, "number": number}).encode()


def order_in(body: bytes) -> Order:
    """Decode an order."""
    found = json.loads(body)
    return str(found["customer"]), int(found["number"])
