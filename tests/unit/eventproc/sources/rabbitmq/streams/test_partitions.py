"""The partition ids of a super stream come from the names of its streams."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.errors import ConfigurationError
from eventproc.sources.rabbitmq.streams.partitions import streams_by_partition


def test_a_stream_is_a_partition_by_the_end_of_its_name():
    """In the order of the super stream; a stream of another name is a partition by all of it."""
    found = streams_by_partition("orders", ["orders-1", "orders-0", "late", "orders-"])

    assert list(found.items()) == [
        ("1", "orders-1"),
        ("0", "orders-0"),
        ("late", "late"),
        ("orders-", "orders-"),
    ]


def test_two_streams_of_one_partition_id_are_refused():
    """The message names both."""
    with pytest.raises(ConfigurationError, match=r"'orders-1' and '1'.*partition '1'"):
        streams_by_partition("orders", ["orders-1", "1"])


@given(names=st.lists(st.sampled_from(["h-0", "h-1", "0", "h", "h-", "x"]), unique=True))
def test_every_stream_is_found_again_or_refused(names):
    """No stream is dropped."""
    try:
        found = streams_by_partition("h", names)
    except ConfigurationError:
        assert {"h-0", "0"} <= set(names)
        return
    assert list(found.values()) == names
