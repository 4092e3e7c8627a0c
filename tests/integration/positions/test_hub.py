"""What is found is checked with the hub, and completed from it, before anything is written."""

import asyncio
import json

import pytest

from eventproc.emulator import EventHubsEmulator
from tests.integration.positions.blobs import Blob, put
from tests.integration.positions.consumers import publish

COUNT = 5


@pytest.fixture(name="orders")
def _orders():
    """Yield an emulator with a hub of two partitions, one of them with events."""
    with EventHubsEmulator({"Orders": 2}) as emulator:
        asyncio.run(publish(emulator.connection_string_for("Orders"), ["0"], COUNT))
        yield emulator


@pytest.fixture(name="folder")
def _folder(orders, monkeypatch):
    """Return what the names of the group's checkpoints begin with."""
    monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", orders.connection_string_for("Orders"))
    return f"127.0.0.1:{orders.port}/orders/$default/checkpoint/"


AT_HUB = ["--store", "sqlite:group.db"]


def offset_of(orders, number: int) -> str:
    """Return the offset of an event of partition 0."""
    return str(orders.events("Orders", "0")[number].offset)


def read(tool, *arguments):
    """Import from the container."""
    return tool("import", "--from", "azure-sdk:C", *arguments, "--yes", here=AT_HUB)


def positions(tool) -> dict[str, tuple[str, int]]:
    """Return offset and number of each partition."""
    code, out, _ = tool("list", "--format", "json", here=AT_HUB)
    assert code == 0
    listed = json.loads(out)["checkpoints"]
    return {c["partition_id"]: (c["offset"], c["sequence_number"]) for c in listed}


@pytest.mark.parametrize("number", [2, COUNT - 1])
@pytest.mark.parametrize("lacks", ["offset", "sequencenumber", "nothing"])
def test_what_a_position_lacks_is_read_from_the_hub(tool, azure, orders, folder, lacks, number):
    """Offset and number are of the same event, be it the last one or not."""
    metadata = {"offset": offset_of(orders, number), "sequencenumber": str(number)}
    put(azure, Blob(f"{folder}0", {k: v for k, v in metadata.items() if k != lacks}))
    code, _, err = read(tool)

    assert code == 0, err
    assert positions(tool) == {"0": (offset_of(orders, number), number)}


@pytest.mark.parametrize(
    ("partition_id", "metadata", "message"),
    [
        ("0", {"offset": "9000", "sequencenumber": "99"}, "partition 0 has no event 99 yet"),
        ("1", {"sequencenumber": "0"}, "partition 1 has no event 0 yet, nor any other"),
        ("7", {"offset": "1", "sequencenumber": "0"}, "event hub 'Orders' does not have"),
    ],
)
def test_a_position_that_is_not_of_the_hub_is_refused(
    tool, azure, folder, partition_id, metadata, message
):
    """After its end, or of a partition that it does not have: most likely it is of another."""
    put(azure, Blob(f"{folder}{partition_id}", metadata))
    code, out, err = read(tool)

    assert (code, out) == (2, "")
    assert message in err
    assert positions(tool) == {}


def test_a_position_from_before_the_hub_was_created_is_refused(tool, azure, orders, folder):
    """The hub was deleted and created again: the same number is of another event."""
    put(azure, Blob(f"{folder}0", {"offset": offset_of(orders, 2), "sequencenumber": "2"}))
    orders.recreate_hub("Orders")
    code, _, err = read(tool)

    assert code == 2
    assert "before this event hub was created: its position is of a former hub" in err
