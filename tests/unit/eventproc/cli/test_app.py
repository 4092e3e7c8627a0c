"""The overview of the command leads an operator to the right verb."""

from typing import Any

import pytest
import typer

from eventproc.cli import _MEANT, main
from eventproc.cli.app import app
from eventproc.cli.terminal.exits import BAD_INPUT

GROUP: Any = typer.main.get_command(app)
OVERVIEW = {name: command.short_help for name, command in GROUP.commands.items()}
"""What ``eventproc --help`` says of each verb."""

TASKS = {
    "see it work before I set anything up": (["group of processes", "lose no event"], "demo"),
    "run my handler": (["your handler", "event hub"], "run"),
    "use all cores of this host": (["cores"], "run"),
    "see how far behind a group is": (["lag", "partition"], "status"),
    "see which process has the licence key": (["resource holders"], "status"),
    "handle the events of yesterday again": (["replay"], "checkpoints"),
    "get past an event that cannot be handled": (["skip"], "checkpoints"),
    "move a group to another store": (["copy", "store"], "checkpoints"),
    "let KEDA start as many processes as needed": (["how many processes", "KEDA"], "scale"),
    "develop without a hub in a cloud": (["without Azure"], "emulator"),
    "know what a deployment will move and cost": (["moves", "storage operations"], "simulate"),
    "know what the store will cost": (["price"], "simulate"),
    "let Kubernetes probe my handler": (["probes"], "run"),
    "stop the work while the database moves": (["Pause", "nothing is received"], "pause"),
    "see what is paused": (["pauses"], "status"),
    "see how old the oldest waiting event is": (["oldest event"], "checkpoints"),
    "create the container for dead letters": (["Create", "dead letters"], "store"),
    "go on after a pause": (["Resume"], "resume"),
    "see why a partition is stuck": (["stuck and why"], "dashboard"),
    "see what happened to a poisonous event": (["given up", "deliver"], "dead-letters"),
    "create the tables before the first start": (["Create", "store"], "store"),
    "run a nightly job on one host only": (["only one", "jobs"], "hold"),
    "share connections among processes": (["resources", "connections"], "hold"),
}
"""Words for which an operator with this task looks, and the verb."""


@pytest.mark.parametrize("task", TASKS)
def test_the_overview_names_the_task_at_one_verb(task):
    """The words stand together at no other verb."""
    words, verb = TASKS[task]
    found = [name for name, text in OVERVIEW.items() if all(word in text for word in words)]

    assert found == [verb]


def names_of(command, *above):
    """Return the path of each command below this one, with the command."""
    yield above, command
    for name, below in getattr(command, "commands", {}).items():
        yield from names_of(below, *above, name)


@pytest.mark.parametrize("path", [" ".join(path) for path, _ in names_of(GROUP)])
def test_no_help_is_cut(path):
    """The help of every verb shows whole sentences, and examples that can be run as they are."""
    command = GROUP
    context = typer.Context(command, info_name="eventproc")
    for name in path.split():
        command = command.commands[name]
        context = typer.Context(command, info_name=name, parent=context)
    text = command.get_help(context).replace("[ARGS]...", "").replace("Published:...", "")

    assert "..." not in text


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("lag", "`eventproc checkpoints lag`"),
        ("replay", "`eventproc checkpoints reset` or `eventproc dead-letters replay`"),
        ("health", "`eventproc run --http`"),
    ],
)
def test_a_word_that_is_no_verb_is_answered_with_the_verb_that_is_meant(word, meant, capsys):
    """The name of a nested verb, or another word for it."""
    code = main([word])
    line = capsys.readouterr().err

    assert code == BAD_INPUT
    assert f"'{word}'. Did you mean {meant}? (see: eventproc --help)" in line


def test_the_verbs_that_are_meant_exist():
    """With their options."""
    for verbs in _MEANT.values():
        for verb in verbs:
            name, *rest = verb.split()
            found = GROUP.commands[name]
            options = {option for each in found.params for option in each.opts}

            assert all(word in options or word in found.commands for word in rest)
