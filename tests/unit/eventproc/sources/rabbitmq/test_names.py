"""The names of partition queues, and the queue of a key."""

import struct
from hashlib import md5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.errors import ConfigurationError, SourceRejectedError
from eventproc.sources.rabbitmq._names import COUNT_MAX, QueueHash, QueueNames, _jump

KEYS = [f"order-{number}" for number in range(3_000)]
JUMPS = [10, 3, 9, 10, 3, 10, 5, 1]
REMAINDERS = [3, 4, 8, 0, 8, 8, 6, 3]


def test_a_partition_is_the_number_of_its_queue():
    """As the documents name them: the prefix, then P and the number."""
    names = QueueNames("OrderEvents", 3)

    assert names.partition_ids == ("0", "1", "2")
    assert names.queue_of("2") == names.queue(2) == "OrderEvents-P2"


@pytest.mark.parametrize("partition_id", ["3", "-1", "01", "", "x", "1.0", "²", "\uff11"])
def test_an_unknown_partition_is_refused(partition_id):
    """The message has what was asked for."""
    with pytest.raises(SourceRejectedError, match="has 3 queues") as caught:
        QueueNames("OrderEvents", 3).queue_of(partition_id)

    assert repr(partition_id) in str(caught.value)


@pytest.mark.parametrize(
    ("prefix", "count"),
    [("", 3), ("x" * 249, 3), ("é" * 125, 3), ("amq.x", 3), ("x", 0), ("x", COUNT_MAX + 1)],
)
def test_names_that_the_broker_would_refuse_are_refused(prefix, count):
    """At once, and not when the last queue is declared."""
    with pytest.raises(ConfigurationError, match=r"prefix is|count is"):
        QueueNames(prefix, count)


def test_the_longest_prefix_is_accepted():
    """AMQP allows names of 255 bytes."""
    names = QueueNames("x" * 248, COUNT_MAX)

    assert len(names.queue(COUNT_MAX)) == 255


@pytest.mark.parametrize(
    ("start", "count", "number"),
    [(1, 1, 0), (42, 57, 43), (0xDEAD10CC, 1, 0), (0xDEAD10CC, 666, 361), (256, 1024, 520)],
)
def test_the_jump_hash_is_that_of_other_libraries(start, count, number):
    """The vectors of its implementation in Go (dgryski/go-jump)."""
    assert _jump(start, count) == number


@given(key=st.text(), count=st.integers(1, 1000))
def test_with_one_queue_more_a_key_stays_or_goes_to_the_new_one(key, count):
    """No key goes from one old queue to another."""
    before = QueueNames("q", count).number_of(key, QueueHash.JUMP)
    after = QueueNames("q", count + 1).number_of(key, QueueHash.JUMP)

    assert after in {before, count}


@given(key=st.text(), count=st.integers(1, COUNT_MAX), how=st.sampled_from(QueueHash))
def test_every_key_has_one_of_the_queues(key, count, how):
    """Whatever its characters are."""
    names = QueueNames("q", count)

    assert 0 <= names.number_of(key, how) < count
    assert names.number_of(key, how) == names.number_of(key, how)


@pytest.mark.parametrize("how", QueueHash)
def test_keys_are_spread_evenly(how):
    """Each queue has a share within a quarter of the mean."""
    names = QueueNames("q", 12)
    shares = [0] * 12
    for key in KEYS:
        shares[names.number_of(key, how)] += 1

    assert all(0.75 * 250 < share < 1.25 * 250 for share in shares), shares


@given(order_id=st.integers(0, 2**31 - 1), count=st.integers(1, 200))
def test_md5_modulo_is_the_formula_of_the_document(order_id, count):
    """``BitConverter.ToUInt32(MD5(UTF8(orderId.ToString())), 0) % count``, on a PC's byte order."""
    (word,) = struct.unpack("<I", md5(str(order_id).encode()).digest()[:4])

    assert QueueNames("q", count).number_of(str(order_id), QueueHash.MD5_MODULO) == word % count


def test_the_queue_of_a_key_never_changes():
    """Publishers of different versions share the queues: these numbers are a stored format."""
    names = QueueNames("q", 12)

    assert [names.number_of(str(key), QueueHash.JUMP) for key in range(8)] == JUMPS
    assert [names.number_of(str(key), QueueHash.MD5_MODULO) for key in range(8)] == REMAINDERS
