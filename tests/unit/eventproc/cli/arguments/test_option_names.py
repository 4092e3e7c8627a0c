"""Messages of the library in the words of the command line."""

import pytest

from eventproc.cli.arguments.option_names import in_options


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("stall_timeout is 0 s: give a timedelta above 0 s", "--stall-timeout is 0 s: give a dura"),
        (
            "rate_max is 0: give a positive number or None",
            "--rate is 0: give a positive number, or",
        ),
        ("Value error, 'x' is not one of 'y'", "'x' is not one of 'y'"),
        ("pass eventhub_name", "pass --eventhub"),
        ("begin is EventProcessorConfig.initial_position", "begin is --start"),
        ("config sets 'a.b', which cannot be set: no", "the address of the hub sets 'a.b', which"),
        ("bootstrap_servers is '': give host:port", "the part after kafka:// is '': give host"),
        ("topic is 'a b': give letters", "--eventhub is 'a b': give letters"),
        ("the topic is full, or None of it", "the topic is full, or None of it"),
    ],
)
def test_a_message_has_options_and_no_words_of_python(message, shown):
    """Ordinary words stay."""
    assert in_options(message).startswith(shown)
