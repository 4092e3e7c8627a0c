"""Names and spans of time in sentences."""

import pytest

from eventproc._core.watching.group import listed, span_text


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c"], "a, b and c"),
        (list("abcdef"), "a, b, c, d, e and f"),
        (list("abcdefg"), "a, b, c, d, e and 2 more"),
    ],
)
def test_a_few_names_are_listed_and_the_others_counted(names, text):
    """As in a sentence."""
    assert listed(names) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (119.4, "119 s"), (120, "2 min"), (9000, "2.5 h")]
)
def test_a_span_has_one_unit(seconds, text):
    """The one that fits."""
    assert span_text(seconds) == text
