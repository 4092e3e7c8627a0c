"""Where a stream begins and ends, and what its offsets look like."""

import pytest

from eventproc.sources.rabbitmq.streams.chunk import Chunk
from eventproc.sources.rabbitmq.streams.position import OFFSETS, StreamBounds

SOME = StreamBounds(low=10, high=20, newest_ms=5)
OLDEST = Chunk(10, 4, [b"a", b"b"], 2)
NEWEST = Chunk(18, 5, [b"c", b"d"], 2)


@pytest.mark.parametrize(
    ("oldest", "newest", "bounds"),
    [
        (OLDEST, NEWEST, SOME),
        (NEWEST, NEWEST, StreamBounds(18, 20, 5)),
        (None, NEWEST, StreamBounds(18, 20, 5)),  # retention deleted it, then a chunk came
        (None, None, StreamBounds(0, 0, None)),
        (OLDEST, None, StreamBounds(0, 0, None)),
    ],
)
def test_bounds_are_those_of_the_oldest_and_the_newest_chunk(oldest, newest, bounds):
    """An empty stream begins and ends at 0."""
    assert StreamBounds.of(oldest, newest) == bounds


def test_an_offset_of_a_stream_has_its_prefix():
    """As in checkpoints that are stored already."""
    assert OFFSETS.text(42) == "stream:42"
