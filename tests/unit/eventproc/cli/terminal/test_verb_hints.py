"""A verb that does not exist: the error names the one that is meant."""

from typing import Any

import pytest
import typer

from eventproc.cli import main
from eventproc.cli.app import app
from eventproc.cli.terminal.verb_hints import MEANT

ROOT: Any = typer.main.get_command(app)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("replay", "`eventproc checkpoints reset` delivers"),
        ("replay", "`eventproc dead-letters replay` those"),
        ("lag", "Did you mean `eventproc checkpoints lag`"),
        ("reset", "Did you mean `eventproc checkpoints reset`"),
        ("list", "Did you mean `eventproc checkpoints list` or `eventproc dead-letters list`"),
        ("health", "/ready"),
        ("delete", "no verb deletes the records of a group"),
        ("checkpoints delete", "no verb deletes the records of a group"),
        ("dead-letters pause", "Did you mean `eventproc pause`"),
        ("statsu", "Did you mean 'status'?"),
        ("checkpoints lga", "Did you mean 'lag'?"),
        ("fly", "No such command 'fly' (see: eventproc --help)"),
    ],
)
def test_an_unknown_verb_leads_to_the_one_that_is_meant(words, hint, capsys):
    """At the top, and below a verb; a typing error gets the nearest name."""
    code = main(words.split())

    assert code == 2
    assert hint in capsys.readouterr().err


def test_every_hint_is_for_a_name_that_does_not_exist_and_names_one_that_does():
    """A new verb takes its name out of the hints, and a renamed one is corrected there."""
    assert MEANT.keys().isdisjoint(ROOT.commands)
    for hint in MEANT.values():
        for command in hint.split("`")[1::2]:
            verb = ROOT
            for word in command.removeprefix("eventproc ").split():
                if not word.startswith("-"):
                    verb = getattr(verb, "commands", {}).get(word) or _last(hint, word)

            assert verb is not None, (hint, command)


def _last(hint, word):
    """Return a verb of which only the last word is given: ``import`` after ``export``."""
    above = ROOT.commands[hint.split("`")[1].split()[1]]
    return getattr(above, "commands", {}).get(word)
