"""Wrong input: one line that names it and the remedy, exit code 2, no traceback, no secret."""

import pytest

from eventproc.cli import main
from eventproc.cli.exits import BAD_INPUT, UNREACHABLE

SECRET = "c3dvcmRmaXNo"
HUB = (
    "Endpoint=sb://127.0.0.1:1/;SharedAccessKeyName=k;"
    f"SharedAccessKey={SECRET};UseDevelopmentEmulator=true"
)
RUN = ["run", "eventproc.cli.demo.handler:FlightLog", "--eventhub", "orders"]
STATUS = ["status", "--eventhub", "orders"]

REFUSED = {
    "no such verb": (["fly"], ["fly"]),
    "no such option": (["run", "--intervall", "5s"], ["--intervall", "--interval"]),
    "no handler": (["run", "--store", "sqlite:g.db"], ["MODULE:CLASS", "eventproc run --help"]),
    "no store": (RUN, ["--store"]),
    "another store": ([*RUN, "--store", "redis:x"], ["--store", "sqlite:PATH", "blob:CONTAINER"]),
    "blob without account": (
        [*RUN, "--store", "blob:checkpoints"],
        ["EVENTPROC_STORAGE_CONNECTION_STRING"],
    ),
    "no folder": ([*RUN, "--store", "sqlite:/nowhere/g.db"], ["/nowhere", "create it"]),
    "no module": (["run", "nope:H", "--store", "sqlite:g.db"], ["'nope'", "nope.py"]),
    "no class": (
        ["run", "eventproc.cli.demo.handler:Flight", "--store", "sqlite:g.db"],
        ["'Flight'", "FlightLog"],
    ),
    "interval": ([*RUN, "--store", "sqlite:g.db", "--interval", "soon"], ["--interval", "10s"]),
    "intervals that do not fit": (
        [*RUN, "--store", "sqlite:g.db", "--expiration", "5s"],
        ["ownership_expiration", "0:00:30"],
    ),
    "start": ([*RUN, "--store", "sqlite:g.db", "--start", "then"], ["--start", "earliest"]),
    "strategy": ([*RUN, "--store", "sqlite:g.db", "--strategy", "x"], ["--strategy", "greedy"]),
    "checkpoints": (
        [*RUN, "--store", "sqlite:g.db", "--checkpoint-events", "0"],
        ["every_events", "1 or more"],
    ),
    "lanes": ([*RUN, "--store", "sqlite:g.db", "--key-lanes", "0"], ["key_lanes", "1 or more"]),
    "a key without lanes": (
        [*RUN, "--store", "sqlite:g.db", "--key-property", "customer"],
        ["--key-property customer", "--key-lanes"],
    ),
    "attempts": ([*RUN, "--store", "sqlite:g.db", "--attempts", "0"], ["attempts_max", "1 or"]),
    "deliveries": ([*RUN, "--store", "sqlite:g.db", "--deliveries", "2"], ["3 or more"]),
    "giving up what is never given up": (
        [*RUN, "--store", "sqlite:g.db", "--give-up", "skip"],
        ["--attempts or --deliveries"],
    ),
    "dead letters without a place": (
        [*RUN, "--store", "sqlite:g.db", "--attempts", "3", "--give-up", "dead-letter"],
        ["--dead-letters blob:CONTAINER"],
    ),
    "a place without dead letters": (
        [*RUN, "--store", "sqlite:g.db", "--give-up", "skip", "--dead-letters", "eventhub:dead"],
        ["--give-up skip", "leave --dead-letters out"],
    ),
    "dead letters nowhere": (
        [*RUN, "--store", "sqlite:g.db", "--attempts", "3", "--dead-letters", "file:dead"],
        ["'file:dead'", "blob:CONTAINER", "eventhub:NAME"],
    ),
    "dead letters without an account": (
        [*RUN, "--store", "sqlite:g.db", "--attempts", "3", "--dead-letters", "blob:dead"],
        ["EVENTPROC_STORAGE_CONNECTION_STRING"],
    ),
    "stall": ([*RUN, "--store", "sqlite:g.db", "--stall-timeout", "soon"], ["--stall-timeout"]),
    "rate": ([*RUN, "--store", "sqlite:g.db", "--rate", "0"], ["rate_max is 0", "positive"]),
    "owner id": ([*RUN, "--store", "sqlite:g.db", "--owner-id", "müller"], ["owner_id", "ASCII"]),
    "no hub name": (
        ["run", "eventproc.cli.demo.handler:FlightLog", "--store", "sqlite:g.db"],
        ["which event hub"],
    ),
    "status of a file that is not there": (
        [*STATUS, "--store", "sqlite:typo.db"],
        ["typo.db", "no such file"],
    ),
    "checkpoints of a store that is not there": (
        ["checkpoints", "list", "--eventhub", "orders", "--store", "sqlite:typo.db"],
        ["typo.db", "no such file"],
    ),
    "no target": (["checkpoints", "reset", "--store", "sqlite:g.db"], ["--to"]),
    "a target that is none": (
        ["checkpoints", "reset", "--to", "then", "--store", "sqlite:g.db"],
        ["--to", "earliest", "-100"],
    ),
    "a file that is not there": (
        ["checkpoints", "import", "absent.json", "--store", "sqlite:g.db"],
        ["absent.json"],
    ),
    "half a position": (
        ["checkpoints", "set", "--partition", "0", "--offset", "7", "--store", "sqlite:g.db"],
        ["--sequence-number"],
    ),
    "hub without partitions": (["emulator", "--hub", "orders"], ["--hub", "NAME:PARTITIONS"]),
    "hub twice": (["emulator", "--hub", "a:1", "--hub", "A:1"], ["'a'", "twice"]),
    "no config": (["emulator", "--config", "absent.json"], ["absent.json"]),
    "port": (["emulator", "--port", "70000"], ["--port", "65535"]),
    "too few events": (["demo", "--events", "5"], ["--events", "100"]),
    "one process": (["demo", "--processors", "1"], ["--processors"]),
}


@pytest.fixture(name="said")
def _said(tmp_path, monkeypatch, capsys):
    """Return what runs the command here, in a folder of its own, and returns code and words."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", HUB)
    monkeypatch.delenv("EVENTPROC_STORAGE_CONNECTION_STRING", raising=False)
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING", raising=False)

    def run(*arguments):
        code = main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.mark.parametrize(("arguments", "parts"), REFUSED.values(), ids=REFUSED)
def test_wrong_input_is_one_clear_line(said, tmp_path, arguments, parts):
    """It names what is wrong and what to do; nothing is created, no secret is shown."""
    code, out, err = said(*arguments)

    assert (code, out) == (BAD_INPUT, "")
    assert err.startswith("eventproc: ")
    assert err.count("\n") == 1
    assert [part for part in parts if part not in err] == []
    assert SECRET not in err
    assert list(tmp_path.iterdir()) == []


def test_without_a_connection_string_the_variable_is_named(said, monkeypatch):
    """It is the first thing that a newcomer lacks."""
    monkeypatch.delenv("EVENTPROC_CONNECTION_STRING")
    run_code, _, run_err = said(*RUN, "--store", "sqlite:g.db")
    status_code, _, status_err = said(*STATUS, "--store", "sqlite:g.db")

    assert (run_code, status_code) == (BAD_INPUT, BAD_INPUT)
    assert "EVENTPROC_CONNECTION_STRING" in run_err
    assert "EVENTPROC_CONNECTION_STRING" in status_err


@pytest.mark.parametrize("text", ["nonsense", f"Endpoint=;SharedAccessKey={SECRET}", HUB[:40]])
def test_a_wrong_connection_string_is_refused_and_not_repeated(said, monkeypatch, text):
    """The form is shown, the key is not."""
    monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", text)
    code, _, err = said(*RUN, "--store", "sqlite:g.db")

    assert (code, err.count("\n")) == (BAD_INPUT, 1)
    assert "connection string" in err
    assert SECRET not in err


def test_a_hub_that_does_not_answer_is_another_exit_code(command):
    """A supervisor may try again."""
    code, out, err = command.run(
        *RUN, "--store", "sqlite:g.db", "--log-level", "error", EVENTPROC_CONNECTION_STRING=HUB
    )

    assert (code, out) == (UNREACHABLE, "")
    assert "Traceback" not in err
    assert SECRET not in err


CHECKPOINTS = ["list", "lag", "reset", "set", "export", "import"]


@pytest.mark.parametrize(
    "verb",
    ["", "demo", "run", "status", "emulator", "checkpoints"]
    + [f"checkpoints {name}" for name in CHECKPOINTS],
)
def test_every_verb_explains_itself(said, verb):
    """With examples and exit codes where there are any."""
    code, out, err = said(*verb.split(), "--help")

    assert (code, err) == (0, "")
    assert f"Usage: eventproc {verb}".rstrip() in out
    assert "Examples:" in out or not verb


def test_the_command_alone_is_help_and_the_version_is_one_line(said):
    """What people try first."""
    bare, version = said(), said("--version")

    assert bare[0] == 0
    assert "eventproc demo" in bare[1]
    assert version[0] == 0
    assert version[1].startswith("eventproc ")
