"""An isolation as a stored word, and its order."""

import pytest

from eventproc.models import ALONE, IN_BATCH, IN_PART, NOT_BEGUN, Isolation, alone
from eventproc.models._checkpoint import IsolationMode

WORDS = {
    "none": NOT_BEGUN,
    "batch": IN_BATCH,
    "part": IN_PART,
    "alone": ALONE,
    "alone 2": alone(2),
    "alone 31": alone(31),
}


def test_each_isolation_has_a_word_that_reads_back():
    """The words are stored, in the order in which processes die with the events."""
    assert {str(isolation): isolation for isolation in WORDS.values()} == WORDS
    assert {word: Isolation.parse(word) for word in WORDS} == WORDS
    assert sorted(WORDS.values()) == list(WORDS.values())


@pytest.mark.parametrize(
    "word", ["", "dancing", "alone x", "alone -1", "alone ²", "alone " + "9" * 99]
)
def test_an_unknown_word_counts_as_a_delivery_in_a_batch(word):
    """So the events are delivered in small parts next, and none is given up."""
    assert Isolation.parse(word) == IN_BATCH


@pytest.mark.parametrize(("mode", "count"), [("ALONE", 0), ("PART", 1), ("NONE", -1)])
def test_only_events_that_were_alone_have_a_count(mode, count):
    """Of others it would say nothing."""
    with pytest.raises(ValueError, match="does not fit"):
        Isolation(IsolationMode[mode], count)
