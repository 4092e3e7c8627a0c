"""The overview of the command leads an operator to the right verb."""

from typing import Any

import pytest
import typer

from eventproc.cli.app import app

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
    "deliver what was given up after a fix": (["given up", "again"], "dead-letters"),
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


def test_the_overview_says_where_to_find_what_no_name_of_a_verb_says():
    """Each line ends with a verb that exists, and the help of `eventproc` shows them all."""
    text = GROUP.get_help(typer.Context(GROUP, info_name="eventproc"))
    lines = text.partition("Where to find it:")[2].strip().splitlines()
    verbs = [line.partition("eventproc ")[2].split() for line in lines if "eventproc " in line]

    assert len(verbs) == len(lines) - 1 == 9
    for verb, *words in verbs:
        below = getattr(GROUP.commands[verb], "commands", {})
        assert all(w.rstrip(",") in below for w in words if below)


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
