"""``eventproc verify``: what it refuses, and a whole run against the emulator and Azurite."""

from pathlib import Path

import pytest
from azure.storage.blob import ContainerClient

from eventproc._command import main
from eventproc._command.terminal.exits import BAD_INPUT, OK, UNREACHABLE
from eventproc.emulator import EventHubsEmulator
from tests.servers.ports import free_port

HUB = "an-own-hub"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--store", "sqlite:x.db"], "give blob:CONTAINER, an empty container"),
        (["--store", "blob:{container}?namespace=x"], "give blob:CONTAINER, an empty container"),
        (["--store", "blob:{container}", "--connection-string", "kafka://x:1"], "which event hub?"),
        (["--store", "blob:{container}", "--eventhub", "small"], "has 2 partitions: give one with"),
        (["--store", "blob:{container}", "--eventhub", "alone"], "needs a consumer group 'audit'"),
    ],
)
def test_what_cannot_be_checked_is_refused_with_a_remedy(
    storage, container, arguments, words, capsys, tmp_path, monkeypatch
):
    """Exit code 2, before anything is written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENTPROC_STORAGE_CONNECTION_STRING", storage)
    with EventHubsEmulator({"small": 2, "alone": 3}) as emulator:
        monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", emulator.connection_string)
        code = main(["verify", *(word.format(container=container) for word in arguments)])
    with ContainerClient.from_connection_string(storage, container) as client:
        assert list(client.list_blobs()) == []

    assert code == BAD_INPUT
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_hub_that_does_not_answer_is_told_from_one_that_differs(
    storage, container, monkeypatch, tmp_path
):
    """Exit code 3, as of every verb."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENTPROC_STORAGE_CONNECTION_STRING", storage)
    address = f"Endpoint=sb://127.0.0.1:{free_port()};SharedAccessKeyName=r;SharedAccessKey=eA==;"
    monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", f"{address}UseDevelopmentEmulator=true")

    assert main(["verify", "--eventhub", HUB, "--store", f"blob:{container}"]) == UNREACHABLE


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_the_emulator_and_azurite_do_all_that_is_assumed(azurite, command, tmp_path):
    """A report without names and keys, no blob left, and the used hub is refused afterwards.

    The service is its own: thousands of blobs are listed, and it is slow if it has many others.
    """
    storage, container = azurite.connection_string, "an-own-container"
    with ContainerClient.from_connection_string(storage, container) as client:
        client.create_container()
    with EventHubsEmulator({HUB: 3}, consumer_groups=["audit"]) as emulator:
        hidden = [
            HUB,
            container,
            emulator.connection_string.partition("sb://")[2].partition(";")[0],
        ]
        arguments = ("verify", "--eventhub", HUB, "--store", f"blob:{container}", "--idle", "1s")
        secrets = {
            "EVENTPROC_CONNECTION_STRING": emulator.connection_string,
            "EVENTPROC_STORAGE_CONNECTION_STRING": storage,
        }
        process = command.start(*arguments, **secrets)
        out, err = process.communicate(timeout=1100)
        again, _, refusal = command.run(*arguments, **secrets)
    with ContainerClient.from_connection_string(storage, container) as client:
        left = list(client.list_blobs())
    report = Path(tmp_path, "eventproc-verify.md").read_text()

    assert (process.returncode, err) == (OK, ""), out
    assert "differs" not in report
    assert report.count("| as assumed |") > 80
    assert report.count("| not checked |") == out.count("  not checked  ") == 3
    assert not any(word in report for word in [*hidden, "AccountKey", "SharedAccessKey"])
    assert left == []
    assert again == BAD_INPUT
    assert "the event hub has or had events" in refusal
