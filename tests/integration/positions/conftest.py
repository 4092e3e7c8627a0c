"""Hubs and containers for the tests of positions, and the command."""

import io
from collections.abc import Iterator

import pytest
from azure.storage.blob import ContainerClient

from eventproc._command import main
from eventproc.emulator import EventHubsEmulator
from tests.integration.positions.blobs import NAMESPACE

HERE = [
    *("--store", "sqlite:group.db", "--namespace", NAMESPACE, "--eventhub", "Orders"),
    "--without-hub",
]


@pytest.fixture
def emulator() -> Iterator[EventHubsEmulator]:
    """Yield an emulator whose hub has two partitions."""
    with EventHubsEmulator({"Orders": 2}, websocket_port=0) as started:
        yield started


@pytest.fixture
def new_hub(emulator: EventHubsEmulator) -> str:
    """Return the connection string of a hub with two partitions."""
    return emulator.connection_string_for("Orders")


@pytest.fixture(name="azure")
def _azure(storage, container):
    """Yield the vendor's own client of the container."""
    with ContainerClient.from_connection_string(storage, container) as client:
        yield client


@pytest.fixture(name="tool")
def _tool(storage, container, tmp_path, monkeypatch, capsys):
    """Return a function that runs a verb of ``checkpoints`` in a folder of this test.

    ``:C`` in an argument stands for the container.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "group.db").touch()
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", storage)

    def run(verb, *arguments, answer="", here=HERE):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        given = [argument.replace(":C", f":{container}") for argument in arguments]
        code = main(["checkpoints", verb, *given, *here])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
