"""Invalid input: one line that names it and the remedy, exit code 2, no traceback, no secret."""

import re

import pytest

from eventproc._command import main
from eventproc._command.terminal.exits import BAD_INPUT, UNREACHABLE

SECRET = "c3dvcmRmaXNo"
HUB = (
    "Endpoint=sb://127.0.0.1:1/;SharedAccessKeyName=k;"
    f"SharedAccessKey={SECRET};UseDevelopmentEmulator=true"
)
RUN = ["run", "eventproc._command.demo.handler:FlightLog", "--eventhub", "orders"]
STATUS = ["status", "--eventhub", "orders"]

PYTHON_NAME = re.compile(r"\b[a-z]+_[a-z_]+\b")
"""The form of a setting's Python name, which a user of the command does not know."""

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
        ["run", "eventproc._command.demo.handler:Flight", "--store", "sqlite:g.db"],
        ["'Flight'", "FlightLog"],
    ),
    "interval": ([*RUN, "--store", "sqlite:g.db", "--interval", "soon"], ["--interval", "10s"]),
    "an expiration that is too short": (
        [*RUN, "--store", "sqlite:g.db", "--expiration", "5s"],
        ["--expiration is 5 s and --interval is 10 s: give at least 3 intervals", "30 s"],
    ),
    "start": ([*RUN, "--store", "sqlite:g.db", "--start", "then"], ["--start", "earliest"]),
    "strategy": ([*RUN, "--store", "sqlite:g.db", "--strategy", "x"], ["--strategy", "greedy"]),
    "checkpoints": (
        [*RUN, "--store", "sqlite:g.db", "--checkpoint-events", "0"],
        ["--checkpoint-events is 0", "1 or more"],
    ),
    "key concurrency": (
        [*RUN, "--store", "sqlite:g.db", "--key-concurrency", "0"],
        ["--key-concurrency is 0"],
    ),
    "a capacity without the placement that uses it": (
        [*RUN, "--store", "sqlite:g.db", "--capacity", "1"],
        ["--capacity is 1", "and --placement is Even: only the placement Weighted uses it"],
    ),
    "an ordinal without the placement that uses it": (
        [*RUN, "--store", "sqlite:g.db", "--ordinal", "0"],
        ["--ordinal is 0", "and --placement is Even: only the placement Ordinal uses it"],
    ),
    "tables without their endpoint": (
        [
            *[*RUN, "--store", "tables:checkpoints", "--storage-connection-string"],
            f"AccountName=a;AccountKey={SECRET};BlobEndpoint=http://127.0.0.1:1/a",
        ],
        ["has BlobEndpoint=", "add the address", "TableEndpoint="],
    ),
    "blobs without their endpoint": (
        [
            *[*RUN, "--store", "blob:checkpoints", "--storage-connection-string"],
            f"AccountName=a;AccountKey={SECRET};TableEndpoint=http://127.0.0.1:1/a",
        ],
        ["has TableEndpoint=", "add the address", "BlobEndpoint="],
    ),
    "a key property without key concurrency": (
        [*RUN, "--store", "sqlite:g.db", "--key-property", "customer"],
        ["--key-property customer", "--key-concurrency"],
    ),
    "attempts": (
        [*RUN, "--store", "sqlite:g.db", "--attempts", "0"],
        ["--attempts is 0"],
    ),
    "deliveries": (
        [*RUN, "--store", "sqlite:g.db", "--deliveries", "2"],
        ["--deliveries is 2"],
    ),
    "an action without attempts or deliveries": (
        [*RUN, "--store", "sqlite:g.db", "--give-up", "skip"],
        ["--attempts or --deliveries"],
    ),
    "dead letters without a sink": (
        [*RUN, "--store", "sqlite:g.db", "--attempts", "3", "--give-up", "dead-letter"],
        ["--dead-letters blob:CONTAINER"],
    ),
    "a dead-letter sink that is not used": (
        [*RUN, "--store", "sqlite:g.db", "--give-up", "skip", "--dead-letters", "eventhub:dead"],
        ["--give-up skip", "leave --dead-letters out"],
    ),
    "an unknown dead-letter sink": (
        [*RUN, "--store", "sqlite:g.db", "--attempts", "3", "--dead-letters", "file:dead"],
        ["'file:dead'", "blob:CONTAINER", "eventhub:NAME"],
    ),
    "dead letters without an account": (
        [*RUN, "--store", "sqlite:g.db", "--attempts", "3", "--dead-letters", "blob:dead"],
        ["EVENTPROC_STORAGE_CONNECTION_STRING"],
    ),
    "stall": ([*RUN, "--store", "sqlite:g.db", "--stall-timeout", "soon"], ["--stall-timeout"]),
    "rate": ([*RUN, "--store", "sqlite:g.db", "--rate", "0"], ["--rate is 0", "positive"]),
    "checkpoint interval": (
        [*RUN, "--store", "sqlite:g.db", "--checkpoint-interval", "0"],
        ["--checkpoint-interval is 0 s"],
    ),
    "stall timeout": (
        [*RUN, "--store", "sqlite:g.db", "--stall-timeout", "0"],
        ["--stall-timeout is 0 s"],
    ),
    "static membership without a name": (
        [*RUN, "--store", "sqlite:g.db", "--static-membership"],
        ["--static-membership is set and --owner-id is not given"],
    ),
    "simulated for no time": (["simulate", "--hours", "0"], ["--hours is 0.0: give more than 0"]),
    "status again at once": (
        [*STATUS, "--store", "sqlite:g.db", "--watch", "--every", "0"],
        ["--every is 0 s: give 0.1 s or more"],
    ),
    "no expiration": (
        [*STATUS, "--store", "sqlite:g.db", "--expiration", "0"],
        ["--expiration is 0 s: give more than 0 s"],
    ),
    "owner id": ([*RUN, "--store", "sqlite:g.db", "--owner-id", "müller"], ["--owner-id", "ASCII"]),
    "no hub name": (
        ["run", "eventproc._command.demo.handler:FlightLog", "--store", "sqlite:g.db"],
        ["--eventhub is not given", "no EntityPath"],
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
    "an invalid target": (
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


@pytest.fixture(name="run")
def _run(tmp_path, monkeypatch, capsys):
    """Return a function that runs the command in its own folder, and returns code and output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", HUB)
    monkeypatch.delenv("EVENTPROC_STORAGE_CONNECTION_STRING", raising=False)
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING", raising=False)

    def run_command(*arguments):
        code = main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_command


@pytest.mark.parametrize(("arguments", "parts"), REFUSED.values(), ids=REFUSED)
def test_invalid_input_is_one_line_that_names_the_remedy(run, tmp_path, arguments, parts):
    """Nothing is created, no secret is shown, and settings have the names of options."""
    code, out, err = run(*arguments)

    assert (code, out) == (BAD_INPUT, "")
    assert err.startswith("eventproc: ")
    assert err.count("\n") == 1
    assert [part for part in parts if part not in err] == []
    assert PYTHON_NAME.findall(err) == []
    assert SECRET not in err
    assert list(tmp_path.iterdir()) == []


def test_a_missing_connection_string_is_an_error_that_names_the_variable(run, monkeypatch):
    """``run`` and ``status`` name ``EVENTPROC_CONNECTION_STRING``."""
    monkeypatch.delenv("EVENTPROC_CONNECTION_STRING")
    run_code, _, run_err = run(*RUN, "--store", "sqlite:g.db")
    status_code, _, status_err = run(*STATUS, "--store", "sqlite:g.db")

    assert (run_code, status_code) == (BAD_INPUT, BAD_INPUT)
    assert "EVENTPROC_CONNECTION_STRING" in run_err
    assert "EVENTPROC_CONNECTION_STRING" in status_err


@pytest.mark.parametrize("text", ["nonsense", f"Endpoint=;SharedAccessKey={SECRET}", HUB[:40]])
def test_a_malformed_connection_string_is_an_error_without_the_key(run, monkeypatch, text):
    """The message does not contain the key."""
    monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", text)
    code, _, err = run(*RUN, "--store", "sqlite:g.db")

    assert (code, err.count("\n")) == (BAD_INPUT, 1)
    assert "connection string" in err
    assert SECRET not in err


def test_a_hub_that_does_not_answer_has_its_own_exit_code(command):
    """The code means that a restart may help."""
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
def test_every_verb_has_help(run, verb):
    """``--help`` shows usage and examples."""
    code, out, err = run(*verb.split(), "--help")

    assert (code, err) == (0, "")
    assert f"Usage: eventproc {verb}".rstrip() in out
    assert "Examples:" in out or not verb


@pytest.mark.parametrize("verb", ["", "checkpoints"])
def test_the_overview_describes_each_verb_in_a_whole_sentence(run, verb):
    """No description is cut to the width of the terminal."""
    _, out, _ = run(*verb.split(), "--help")
    commands = out.partition("Commands:")[2].partition("Examples:")[0]
    commands = commands.partition("Where to find it:")[0]

    assert "..." not in commands
    assert " ".join(commands.split()).endswith(".")


def test_a_hub_that_does_not_exist_is_the_same_error_for_every_verb(command, orders, tmp_path):
    """Each verb has the same exit code and names the remedy, without blaming the credential."""
    (tmp_path / "g.db").touch()
    place = ["--eventhub", "order", "--store", "sqlite:g.db"]
    handler = "eventproc._command.demo.handler:FlightLog"
    for verb in (["status"], ["checkpoints", "lag"], ["run", handler]):
        code, out, err = command.run(
            *verb, *place, EVENTPROC_CONNECTION_STRING=orders.connection_string
        )

        assert (code, out) == (BAD_INPUT, "")
        assert "there is no such event hub" in err
        assert "Check the " in err
        assert "take the credential" not in err


def test_the_command_without_arguments_prints_help(run):
    """Its exit code is 0; ``--version`` prints one line."""
    bare, version = run(), run("--version")

    assert bare[0] == 0
    assert "eventproc demo" in bare[1]
    assert version[0] == 0
    assert version[1].startswith("eventproc ")


def test_an_unknown_host_is_a_wrong_setting_for_every_verb(command, tmp_path):
    """Each verb has the same exit code and names the remedy; a retry would fail in the same way."""
    (tmp_path / "g.db").touch()
    place = ["--eventhub", "orders", "--store", "sqlite:g.db"]
    handler = "eventproc._command.demo.handler:FlightLog"
    elsewhere = HUB.replace("127.0.0.1:1", "nowhere.invalid")
    for verb in (["status"], ["checkpoints", "lag"], ["run", handler]):
        code, out, err = command.run(*verb, *place, EVENTPROC_CONNECTION_STRING=elsewhere)

        assert (code, out) == (BAD_INPUT, "")
        assert "the host is not known" in err
        assert "Check the " in err
