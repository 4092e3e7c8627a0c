"""The help of verbs with many options has each option under one heading."""

import pytest
import typer

from eventproc._command.app import app
from eventproc._command.terminal.help import HEADINGS, OTHERS, HeadedCommand
from eventproc._command.workers.worker import NUMBER_VARIABLE

CONTEXT = typer.Context(app, info_name="eventproc")
COMMANDS = {name: app.get_command(CONTEXT, name) for name in app.verbs}
NAMES = [name for name, each in COMMANDS.items() if isinstance(each, HeadedCommand)]


def sections_of(name):
    """Return the options that the help of a verb shows, by heading, in its order."""
    command = COMMANDS[name]
    context = typer.Context(command, info_name=name)
    found: dict[str, list[str]] = {}
    heading = ""
    for line in command.get_help(context).splitlines():
        if line.endswith(":") and not line.startswith(" "):
            heading = line[:-1]
        elif heading and line.startswith("  --"):
            found.setdefault(heading, []).append(line.split()[0])
    return found


def test_run_and_hold_have_headings():
    """They have more options than one list can show."""
    assert NAMES == ["run", "hold"]


@pytest.mark.parametrize("name", NAMES)
def test_each_option_stands_once_in_the_order_of_the_table(name):
    """Only the help itself is under no heading of the table."""
    sections = sections_of(name)
    options = {option for each in COMMANDS[name].params for option in each.opts}
    shown = [option for each in sections.values() for option in each]

    assert sections.pop(OTHERS) == ["--help"]
    assert list(sections) == [heading for heading in HEADINGS if heading in sections]
    assert all(
        found == [option for option in HEADINGS[heading] if option in found]
        for heading, found in sections.items()
    )
    assert sorted(shown) == sorted({*(o for o in options if o.startswith("--")), "--help"})


def test_the_probes_stand_together_and_before_the_settings_of_the_group():
    """An operator looks for them first."""
    sections = sections_of("run")
    order = list(sections)

    assert sections["Health and logs"][:3] == ["--http", "--stall-timeout", "--failover-timeout"]
    assert order.index("Health and logs") < order.index("Sharing in the group")


def test_each_option_of_the_table_is_one_of_todays():
    """A renamed option would fall to the others."""
    todays = {o for name in NAMES for each in COMMANDS[name].params for o in each.opts}

    assert {option for options in HEADINGS.values() for option in options} <= todays


@pytest.mark.parametrize("name", NAMES)
def test_each_option_may_be_a_variable_of_its_name(name):
    """So that whoever knows an option knows the variable; that of ``--group`` says which group."""
    variables = {each.opts[0]: each.envvar for each in COMMANDS[name].params[1:]}
    others = {"--group": "EVENTPROC_RESOURCE_GROUP"}

    for option, variable in variables.items():
        by_name = f"EVENTPROC_{option[2:].upper().replace('-', '_')}"
        expected = others.get(option, by_name)
        assert expected in ([variable] if isinstance(variable, str) else variable)


def test_a_variable_gives_an_option_unless_it_is_empty(monkeypatch):
    """An option of the command line goes before it."""

    def batch_size(*arguments):
        words = ["orders:Handler", "--eventhub", "orders", "--store", "sqlite:group.db", *arguments]
        return COMMANDS["run"].make_context("run", words).params["batch_size_max"]

    by_default = batch_size()
    monkeypatch.setenv("EVENTPROC_BATCH_SIZE", "7")

    assert (batch_size(), batch_size("--batch-size", "8")) == (7, 8)
    monkeypatch.setenv("EVENTPROC_BATCH_SIZE", "")
    assert batch_size() == by_default


def test_a_misspelt_variable_is_reported(monkeypatch, capsys):
    """Not one of the user's own, nor one that another part of the library reads."""
    others = ("HANDLER", "STORAGE", "RECEIVE_PATH", NUMBER_VARIABLE.removeprefix("EVENTPROC_"))
    for name in ("CHEKPOINT_EVENTS", "EVENTHUB", *others):
        monkeypatch.setenv(f"EVENTPROC_{name}", "7")
    words = ["orders:Handler", "--store", "sqlite:group.db"]

    COMMANDS["run"].make_context("run", words)

    assert capsys.readouterr().err == (
        "warning: EVENTPROC_CHEKPOINT_EVENTS is not read; "
        "did you mean EVENTPROC_CHECKPOINT_EVENTS?\n"
    )
