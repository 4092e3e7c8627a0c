"""A verb that does not exist: the error names the one that is meant."""

import pytest

from eventproc._command import main


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("replay", "Did you mean `eventproc dead-letters replay`?"),
        ("lag", "Did you mean `eventproc checkpoints lag`?"),
        ("resets", "Did you mean `eventproc checkpoints reset`?"),
        ("list", "Did you mean `eventproc checkpoints list` or `eventproc dead-letters list`?"),
        ("dead-letters pause", "Did you mean `eventproc pause`?"),
        ("statsu", "Did you mean `eventproc status`?"),
        ("checkpoints lga", "Did you mean `eventproc checkpoints lag`?"),
        ("fly", "No such command 'fly' (see: eventproc --help)"),
        (
            "status --stoer sqlite:a.db",
            "No such option: --stoer (Possible options: --filter, --sort, --store)",
        ),
    ],
)
def test_an_unknown_verb_or_option_leads_to_the_one_that_is_meant(words, hint, capsys):
    """At the top, and below a verb."""
    assert main(words.split()) == 2
    assert hint in capsys.readouterr().err
