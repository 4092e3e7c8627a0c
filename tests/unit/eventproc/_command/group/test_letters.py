"""The table of ``dead-letters list`` and the text of ``show``."""

from datetime import UTC, datetime

import pytest
from rich.console import Console

from eventproc._command.group.letters import letters_table, whole_text
from eventproc.models import ConsumerGroup, DeadLetter, ReceivedEvent, StoredLetter

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GROUP = ConsumerGroup(fully_qualified_namespace="n", eventhub_name="orders", name="$Default")


def letter(*, message="", body=b""):
    """A letter whose error has this message."""
    event = ReceivedEvent(offset="1", sequence_number=1, enqueued_time=NOW, body=body)
    given_up = DeadLetter(
        group=GROUP,
        partition_id="0",
        event=event,
        owner_id="a",
        attempt_count=1,
        error_type="ValueError",
        error_message=message,
        traceback="",
        given_up_at=NOW,
    )
    return StoredLetter(place="x", letter=given_up)


@pytest.mark.parametrize(
    ("message", "shown"),
    [("m" * 68, f"ValueError: {'m' * 68}"), ("m" * 69, f"ValueError: {'m' * 65}...")],
)
def test_an_error_that_is_cut_ends_with_dots(message, shown):
    """Otherwise half a word looks like the whole message."""
    console = Console(width=200)
    with console.capture() as capture:
        console.print(letters_table([letter(message=message)], rows_max=None))

    assert f" {shown} " in capture.get()


@pytest.mark.parametrize(("body", "size"), [(b"m", "1 byte"), (b"mm", "2 bytes")])
def test_the_size_of_a_body_is_written_as_a_person_says_it(body, size):
    """One byte is no plural."""
    assert f"body ({size}):" in whole_text(letter(body=body))
