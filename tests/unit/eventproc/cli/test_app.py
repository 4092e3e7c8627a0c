"""The overview of the command leads an operator to the right verb."""

import re
from typing import Any

import pytest
import typer

from eventproc.cli.app import DURATION_NOTE, app
from eventproc.validation.option_values import parse_duration

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


PATHS = [" ".join(path) for path, _ in names_of(GROUP)]


def help_of(path):
    """Return the help of a verb, with each paragraph on one line."""
    command = GROUP
    context = typer.Context(command, info_name="eventproc")
    for name in path.split():
        command = command.commands[name]
        context = typer.Context(command, info_name=name, parent=context)
    return " ".join(command.get_help(context).split())


@pytest.mark.parametrize("path", PATHS)
def test_no_help_is_cut(path):
    """The help of every verb shows whole sentences, and examples that can be run as they are."""
    text = help_of(path).replace("[ARGS]...", "").replace("Published:...", "")

    assert "..." not in text


@pytest.mark.parametrize("path", PATHS)
def test_values_are_shown_as_a_person_writes_them(path):
    """Without the types and the formulas that typer shows."""
    assert re.findall(r"<\w+[>|]|[<>]=|\{\S+\}", help_of(path)) == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("run", "run [OPTIONS] MODULE:CLASS Run"),
        ("run", "Arguments: MODULE:CLASS Your handler"),
        ("run", "[env var: EVENTPROC_WORKERS; 0 or more]"),
        ("run", "--strategy balanced|greedy|cooperative|release "),
        ("demo", "[default: 3; 2 to 8]"),
    ],
)
def test_a_value_is_shown_by_its_name_its_choices_or_its_limits(path, words):
    """As in the documentation."""
    assert words in help_of(path)


@pytest.mark.parametrize("path", PATHS)
def test_the_form_of_a_duration_is_stated_once_where_there_is_one(path):
    """And each form that it names can be given."""
    text = help_of(path)

    assert text.count(DURATION_NOTE) == (" DURATION " in text.replace(DURATION_NOTE, ""))
    forms = [word.strip(",.") for word in DURATION_NOTE.partition(": ")[2].split()]
    assert [parse_duration("--x", form).total_seconds() for form in forms] == [0.5, 10, 120, 5400]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("checkpoints reset", "+1 skips one event"),
        ("checkpoints reset", "unlike in `eventproc checkpoints import`"),
        ("checkpoints import", "While processors of the group run, an import is refused without"),
        ("pause", "All is quiet when /partitions of each process (`eventproc run --http`) shows"),
        ("dead-letters replay", "all consumer groups of the hub get them"),
        ("simulate", "Operations are counted per hour, their price per month."),
        ("run", "in a container give 0.0.0.0:PORT"),
        ("status", "--partition ID Only this partition."),
        ("store init", "SQLite file, blob container, Azure table, tables in PostgreSQL"),
    ],
)
def test_a_verb_answers_what_readers_asked(path, words):
    """Each of these was missing, and somebody did the wrong thing."""
    assert words in help_of(path)


def _help_of(*verbs: str) -> str:
    """Return what ``eventproc VERB --help`` prints."""
    command = GROUP
    context = typer.Context(command, info_name="eventproc")
    for verb in verbs:
        command = command.commands[verb]
        context = typer.Context(command, info_name=verb, parent=context)
    return str(command.get_help(context))


def _verbs(group: Any, *above: str) -> list[tuple[str, ...]]:
    """Return the words of each verb."""
    return [
        words
        for name, command in group.commands.items()
        for words in (
            _verbs(command, *above, name) if hasattr(command, "commands") else [(*above, name)]
        )
    ]


@pytest.mark.parametrize("verb", _verbs(GROUP), ids=" ".join)
def test_an_option_says_what_to_give_in_words_and_not_as_a_type_of_python(verb):
    """``--port PORT`` and ``--seed N``, never ``--port <int range>``."""
    assert not re.findall(r"--\S+ <(?:int|float|str|path)[^>]*>", _help_of(*verb))


def test_the_help_of_hold_speaks_of_resources():
    """Its options are those of run, and a group of resources has no partitions."""
    text = " ".join(_help_of("hold").split())

    assert "partition" not in text.replace("/partitions", "")
    assert "the owner of a resource counts as dead" in text
