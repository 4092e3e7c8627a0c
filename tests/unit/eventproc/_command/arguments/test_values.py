"""Hubs on the command line, and durations in its output."""

from datetime import timedelta

import pytest

from eventproc._command.arguments.options import format_duration, parse_hub
from eventproc.errors import ConfigurationError


@pytest.mark.parametrize("text", ["orders", "orders:", ":8", "orders:many", "orders:-1"])
def test_a_hub_without_name_or_partition_count_is_refused(text):
    """The message shows the form."""
    with pytest.raises(ConfigurationError, match=r"--hub is .*NAME:PARTITIONS"):
        parse_hub("--hub", text)


def test_a_hub_is_a_name_and_a_partition_count():
    """As in ``orders:8``."""
    assert parse_hub("--hub", "orders:8") == ("orders", 8)


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
