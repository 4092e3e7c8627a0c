"""The overview of the command leads an operator to the right verb."""

import re
import subprocess
import sys

import pytest
import typer

from eventproc._command import main
from eventproc._command.app import DURATION_NOTE, VerbGroup, app
from eventproc._core.option_values import parse_duration

OVERVIEW = {name: verb.summary for name, verb in app.verbs.items()}
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
    text = app.get_help(typer.Context(app, info_name="eventproc"))
    lines = text.partition("Where to find it:")[2].strip().splitlines()
    verbs = [line.partition("eventproc ")[2].split() for line in lines if "eventproc " in line]

    assert len(verbs) == len(lines) - 1 == 10
    for verb, *words in verbs:
        below = getattr(app.verbs[verb], "verbs", {})
        assert all(w.rstrip(",") in below for w in words if below)


PATHS = ["", *(" ".join(path) for path in app.paths())]
VERBS = [path for path in app.paths() if not isinstance(app.verbs[path[0]], VerbGroup) or path[1:]]


def help_of(path):
    """Return the help of a verb, with each paragraph on one line."""
    return " ".join(raw_help_of(*path.split()).split())


def raw_help_of(*path):
    """Return what ``eventproc VERB --help`` prints."""
    command, context = app, typer.Context(app, info_name="eventproc")
    for name in path:
        command = command.get_command(context, name)
        context = typer.Context(command, info_name=name, parent=context)
    return str(command.get_help(context))


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


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_an_option_says_what_to_give_in_words_and_not_as_a_type_of_python(verb):
    """``--port PORT`` and ``--seed N``, never ``--port <int range>``."""
    assert not re.findall(r"--\S+ <(?:int|float|str|path)[^>]*>", raw_help_of(*verb))


def test_the_help_of_hold_speaks_of_resources():
    """Its options are those of run, and a group of resources has no partitions."""
    text = " ".join(raw_help_of("hold").split())

    assert "partition" not in text.replace("/partitions", "")
    assert "the owner of a resource counts as dead" in text
    assert "resource" not in help_of("run")


@pytest.mark.parametrize("name", [n for n, v in app.verbs.items() if not isinstance(v, VerbGroup)])
def test_the_overview_says_of_a_verb_what_its_help_begins_with(name):
    """The overview does not import it, so the sentence stands in both places."""
    usage, _, text = help_of(name).partition(" [OPTIONS] ")

    assert usage == f"Usage: eventproc {name}"
    assert app.verbs[name].summary in text


def test_help_imports_no_verb():
    """Otherwise it would take most of a second."""
    code = (
        "import sys; from eventproc._command import main; main(['--help']); "
        "print([name for name in sys.modules if name.startswith('eventproc._command.verbs.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


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
