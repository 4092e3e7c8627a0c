"""A genuine consumer and we take turns at a hub: positions are imported, and exported again."""

import asyncio
import json

import pytest

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc._command import main
from eventproc.sources.eventhubs import EventHubSource
from tests.integration.positions.blobs import at, blobs_in, put
from tests.integration.positions.consumers import (
    JAVASCRIPT,
    NODE,
    dapr_handles,
    go_handles,
    host_handles,
    java_handles,
    javascript_handles,
    ours_handles,
    publish,
    python_handles,
)

PARTITIONS = ("0", "1")
HALF = 4
"""The first event of the second half."""

COUNT = 10
MORE = 15
"""So many events there are in a partition when the genuine consumer goes on."""

EVERY_EVENT = {(p, number): 1 for p in PARTITIONS for number in range(MORE)}

# Azure's client does not close the connection of a link that was stolen.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@pytest.fixture(name="hub")
def _hub(new_hub, monkeypatch, storage, tmp_path):
    """Return the connection string of a new hub, set for the command, too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", storage)
    monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", new_hub)
    monkeypatch.setenv("EVENTPROC_STORE", "sqlite:group.db")
    assert main(["store", "init"]) == 0
    return new_hub


def counted(*parts):
    """Return how often each event was handled."""
    every = [event for part in parts for event in part]
    return {event: every.count(event) for event in every}


def rest_of(hub):
    """Handle the rest with this library."""
    source = EventHubSource.from_connection_string(hub)
    return asyncio.run(
        ours_handles(source, SqliteCheckpointStore("group.db"), COUNT - 1, PARTITIONS)
    )


needs_javascript = pytest.mark.skipif(
    NODE is None or not JAVASCRIPT.exists(),
    reason="needs Node and `npm ci` in tests/integration/emulator/javascript",
)


@pytest.mark.parametrize(
    ("handles", "names_there"),
    [
        pytest.param(python_handles, "", id="python"),
        # JavaScript's and Java's leave the port out of the namespace.
        pytest.param(
            javascript_handles, "?namespace=127.0.0.1", id="javascript", marks=needs_javascript
        ),
        pytest.param(java_handles, "?namespace=127.0.0.1", id="java", marks=pytest.mark.long),
        pytest.param(go_handles, "?names=exact", id="go", marks=pytest.mark.long),
    ],
)
def test_an_azure_sdk_handles_the_first_half_we_the_second_and_it_the_rest(
    hub, storage, container, handles, names_there, capsys
):
    """Nothing is lost and nothing handled twice; --dry-run shows the lag on both sides."""
    asyncio.run(publish(hub, PARTITIONS, COUNT))
    first = asyncio.run(handles(hub, storage, container, HALF - 1, PARTITIONS))
    there = ["checkpoints", "import", "--from", f"azure-sdk:{container}"]
    assert main([*there, "--dry-run", "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)["changes"]
    assert main([*there, "--yes"]) == 0
    second = rest_of(hub)
    back = ["checkpoints", "export", "--to", f"azure-sdk:{container}{names_there}", "--overwrite"]
    assert main([*back, "--yes"]) == 0
    asyncio.run(publish(hub, PARTITIONS, MORE - COUNT))
    rest = asyncio.run(handles(hub, storage, container, MORE - 1, PARTITIONS))

    assert counted(first, second, rest) == EVERY_EVENT
    assert [(c["lag_here"], c["lag_there"]) for c in shown] == [(COUNT, COUNT - HALF)] * 2


@pytest.mark.long
def test_dapr_handles_the_first_half_we_the_second_and_it_the_rest(hub, storage, azure):
    """It stops after all that is in the hub: it checkpoints what it delivers, handled or not."""
    container, names = azure.container_name, EventHubSource.from_connection_string(hub)
    # Without a checkpoint, it begins at the newest event.
    folder = f"{names.fully_qualified_namespace}/{names.eventhub_name}/$Default"
    put(azure, *(at(folder, partition_id, "-1", "-1") for partition_id in PARTITIONS))
    asyncio.run(publish(hub, PARTITIONS, HALF))
    first = dapr_handles(hub, azure, storage, HALF - 1, PARTITIONS)
    asyncio.run(publish(hub, PARTITIONS, COUNT - HALF))
    assert main(["checkpoints", "import", "--from", f"dapr:{container}", "--yes"]) == 0
    second = rest_of(hub)
    back = ["checkpoints", "export", "--to", f"dapr:{container}", "--overwrite", "--yes"]
    assert main(back) == 0
    asyncio.run(publish(hub, PARTITIONS, MORE - COUNT))
    rest = dapr_handles(hub, azure, storage, MORE - 1, PARTITIONS)

    assert counted(first, second, rest) == EVERY_EVENT


@pytest.mark.long
def test_an_event_processor_host_handles_the_first_half_we_the_second_and_it_the_rest(
    emulator, hub, storage, azure, tmp_path, capsys
):
    """Java's, with positions in leases. It goes back by hand: without leases, from our numbers."""

    def host(last, after):
        container, folder = azure.container_name, tmp_path / str(last)
        folder.mkdir()
        handling = host_handles(emulator, storage, container, last, PARTITIONS, after, folder)
        return asyncio.run(handling)

    asyncio.run(publish(hub, PARTITIONS, COUNT))
    first = host(HALF - 1, {})
    place = f"event-processor-host:{azure.container_name}"
    assert main(["checkpoints", "import", "--from", place, "--yes"]) == 0
    second = rest_of(hub)
    asyncio.run(publish(hub, PARTITIONS, MORE - COUNT))
    capsys.readouterr()
    assert main(["checkpoints", "list", "--format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)["checkpoints"]
    for blob in blobs_in(azure):
        azure.delete_blob(blob.name)
    rest = host(MORE - 1, {c["partition_id"]: c["sequence_number"] for c in listed})

    assert counted(first, second, rest) == EVERY_EVENT
