"""Values given as text: what is accepted, and the errors for what cannot be parsed."""

from datetime import UTC, datetime, timedelta

import pytest

from eventproc._core.option_values import parse_duration, parse_position
from eventproc.errors import ConfigurationError
from eventproc.models import EventPosition


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("500ms", timedelta(milliseconds=500)),
        ("10s", timedelta(seconds=10)),
        ("10", timedelta(seconds=10)),
        ("1.5 m", timedelta(seconds=90)),
        ("2h", timedelta(hours=2)),
        ("PT10S", timedelta(seconds=10)),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text, span):
    """Without a unit it is in seconds."""
    assert parse_duration("--interval", text) == span


@pytest.mark.parametrize("text", ["", "soon", "-1s", "10 days", "1e3", "10s 5ms"])
def test_an_invalid_duration_is_refused(text):
    """The message names the option, repeats the text and shows the form."""
    with pytest.raises(ConfigurationError, match=r"--interval is .*500ms, 10s, 2m or 1h"):
        parse_duration("--interval", text)


@pytest.mark.parametrize("text", ["876001h", "9" * 30 + "ms", "9" * 400, "9" * 5_000 + "m"])
def test_a_duration_of_more_than_a_hundred_years_is_refused(text):
    """No date lies that far away; the message has the beginning of the text and the limit."""
    assert parse_duration("--interval", "876000h") == timedelta(days=36_500)
    with pytest.raises(ConfigurationError, match=r"--interval is '[0-9hms]{1,40}': give 876000h,"):
        parse_duration("--interval", text)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", EventPosition.earliest()),
        ("Latest", EventPosition.latest()),
        ("4711", EventPosition.from_sequence_number(4711, is_inclusive=True)),
        (
            "2026-01-31T08:00:00Z",
            EventPosition(enqueued_time=datetime(2026, 1, 31, 8, tzinfo=UTC), is_inclusive=True),
        ),
        ("2026-01-31", EventPosition.from_enqueued_time(datetime(2026, 1, 31, tzinfo=UTC))),
    ],
)
def test_a_position_is_a_word_a_number_or_a_time(text, position):
    """A time without a zone is UTC, and a sequence number names the first event to read."""
    assert parse_position("--start", text) == position


@pytest.mark.parametrize("text", ["", "yesterday", "-5", "31.01.2026", "²"])
def test_an_invalid_position_is_refused(text):
    """The message names the option and all forms."""
    with pytest.raises(ConfigurationError, match=r"--start is .*earliest, latest, a sequence"):
        parse_position("--start", text)


@pytest.mark.parametrize("text", [str(2**63), "9" * 5_000])
def test_a_sequence_number_above_the_maximum_is_refused(text):
    """The message names the largest one."""
    with pytest.raises(ConfigurationError, match=r"--start is 9.*end at 9223372036854775807"):
        parse_position("--start", text)
    assert parse_position("--start", str(2**63 - 1)).sequence_number == 2**63 - 1
