"""Durations in the output."""

from datetime import timedelta

import pytest

from eventproc._command.arguments.options import format_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.44, "0.4 s"),
        (12.3, "12 s"),
        (119, "119 s"),
        (180, "3 min"),
        (7200, "2 h"),
        (432_000, "5 days"),
    ],
)
def test_durations_are_printed_with_one_figure_and_one_unit(seconds, text):
    """With as many digits as matter."""
    assert format_duration(timedelta(seconds=seconds)) == text
