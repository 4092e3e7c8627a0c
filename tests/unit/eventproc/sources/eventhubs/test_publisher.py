"""How a publisher divides batches among links."""

import pytest

from eventproc.sources.eventhubs._publisher import CONNECTIONS_MAX, KEYS_FOR_A_CONNECTION, _links


def test_each_partition_and_all_events_without_one_have_a_link_of_the_first_connection():
    """A few keys are sent over it, one after another."""
    targets = [("0", None), (None, "anna"), (None, None), ("1", None), (None, "bob")]

    assert _links(targets) == {
        (None, 0): [(None, "anna"), (None, "bob"), (None, None)],
        ("0", 0): [("0", None)],
        ("1", 0): [("1", None)],
    }


@pytest.mark.parametrize(
    ("key_count", "connection_count"),
    [
        (1, 1),
        (KEYS_FOR_A_CONNECTION, 2),
        (3 * KEYS_FOR_A_CONNECTION - 1, 3),
        (1000 * KEYS_FOR_A_CONNECTION, CONNECTIONS_MAX),
    ],
)
def test_many_keys_are_divided_evenly_among_connections(key_count, connection_count):
    """Each key is in one of them, so its events stay in order."""
    targets: list[tuple[str | None, str | None]] = [(None, str(key)) for key in range(key_count)]
    links = _links(targets)
    sizes = [len(link) for link in links.values()]

    assert list(links) == [(None, number) for number in range(connection_count)]
    assert sorted(target for link in links.values() for target in link) == sorted(targets)
    assert max(sizes) - min(sizes) <= 1
