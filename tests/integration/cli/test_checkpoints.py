"""``eventproc checkpoints``: shown, moved while processors run, exported and imported."""

import asyncio
import io
import json
from pathlib import Path
from textwrap import dedent

import pytest
from azure.eventhub import EventData, EventHubProducerClient
from azure.storage.blob import ContainerClient

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc._command import main
from eventproc.emulator import EventHubsEmulator, HubConfiguration
from eventproc.models import CheckpointUpdate, ConsumerGroup

HANDLER = """
    import asyncio
    from pathlib import Path

    from eventproc import PartitionHandler

    class Slow(PartitionHandler):
        async def process_events(self, context, events):
            for event in events:
                while event.sequence_number > 3 and not Path("go").exists():
                    await asyncio.sleep(0.1)
                await asyncio.sleep(0.1)
                print(context.partition_id, event.sequence_number, flush=True)
            context.state = str(int(context.state or 0) + len(events)).encode()
"""
FAST = ["--interval", "1s", "--expiration", "6s", "--shutdown-timeout", "5s"]
HERE = ["--eventhub", "orders", "--store", "sqlite:group.db"]
COUNT = 40


@pytest.fixture(name="tool")
def _tool(orders, tmp_path, monkeypatch, capsys):
    """Publish 40 events to partition 0 and one to partition 1; return a function that runs the
    verb."""
    (tmp_path / "shop.py").write_text(dedent(HANDLER))
    with EventHubProducerClient.from_connection_string(
        orders.connection_string_for("orders")
    ) as producer:
        producer.send_batch([EventData("x")] * COUNT, partition_id="0")
        producer.send_batch([EventData("y")], partition_id="1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", orders.connection_string)
    (tmp_path / "group.db").touch()

    def run(*arguments, answer=""):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        code = main(["checkpoints", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def json_of(tool, verb, *options):
    """Run a verb that must succeed; return the JSON that it prints."""
    code, out, err = tool(verb, *HERE, *options, "--format", "json")

    assert code == 0
    assert not err or "no process of consumer group '$Default'" in err
    return json.loads(out)


def positions(found):
    """Return the position of each partition in a list."""
    return {c["partition_id"]: c["sequence_number"] for c in found["checkpoints"]}


def store_state(orders, number, state):
    """Store a checkpoint of partition 0 with a state, as a handler would."""

    async def store():
        async with SqliteCheckpointStore("group.db") as opened:
            group = ConsumerGroup(
                fully_qualified_namespace=f"127.0.0.1:{orders.port}", eventhub_name="orders"
            )
            update = CheckpointUpdate(
                partition_id="0",
                offset="1",
                sequence_number=number,
                replaces=await opened.read_checkpoint(group, "0"),
                writer="w",
                state=state,
            )
            await opened.update_checkpoint(group, update)

    asyncio.run(store())


def handled_until(process, number):
    """Read the numbers of partition 0 that a processor prints, up to *number*."""
    numbers: list[int] = []
    while not numbers or numbers[-1] != number:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        partition_id, printed = line.split()
        if partition_id == "0":
            numbers.append(int(printed))
    return numbers


@pytest.mark.parametrize("first", [2, 35])
def test_a_running_owner_continues_at_the_position_of_a_reset(
    command, tool, orders, first, tmp_path
):
    """After a reset, the owner drops the events that it holds and does not overwrite the reset."""
    process = command.start(
        *("run", "shop:Slow", *HERE, *FAST, "--checkpoint-events", "1", "--owner-id", "one"),
        EVENTPROC_CONNECTION_STRING=orders.connection_string,
    )
    before = handled_until(process, 3)
    (change,) = json_of(tool, "reset", "--partition", "0", "--to", str(first), "--yes")["changes"]
    (tmp_path / "go").touch()
    numbers = before + handled_until(process, COUNT - 1)
    process.terminate()
    process.communicate(timeout=60)
    cut = next(at for at, number in enumerate(numbers) if at != number)
    found = json_of(tool, "list")

    assert (change["is_moved"], change["notified_owner_id"]) == (True, "one")
    assert numbers[cut:] == list(range(first, COUNT))
    assert positions(found)["0"] == COUNT - 1
    assert found["checkpoints"][0]["state_bytes"] == len(str(COUNT - first))
    assert process.returncode == 0


def test_a_reset_is_shown_and_needs_a_confirmation(tool, orders):
    """The change is printed first; nothing is written without ``y``, ``--yes`` or an open input."""
    store_state(orders, 39, b"40")
    arguments = ["reset", *HERE, "--to", "10", "--partition", "0"]
    dry = tool(*arguments, "--dry-run")
    unanswered = tool(*arguments)
    refused = tool(*arguments, answer="n\n")
    untouched = positions(json_of(tool, "list"))
    confirmed = tool(*arguments, answer="y\n")
    again = tool(*arguments, answer="y\n")

    assert dry[0] == 0
    assert ["0", "39", "9", "30", "again", "dropped", "(2", "bytes)"] in [
        line.split() for line in dry[1].splitlines()
    ]
    assert unanswered[0] == 2
    assert "--yes" in unanswered[2]
    assert refused[0] == 1
    assert "Nothing was changed." in refused[1]
    assert untouched == {"0": 39}
    assert confirmed[0] == 0
    assert "1 of 1 moved." in confirmed[1]
    assert positions(json_of(tool, "list")) == {"0": 9}
    assert again[0] == 0
    assert "as it is" in again[1]


def test_a_reset_into_the_future_is_refused(tool):
    """A wrong year would drop the states and move nothing."""
    code, _, errors = tool("reset", *HERE, "--to", "2999-01-31T08:00:00Z", "--yes")

    assert code == 2
    assert "2999-01-31T08:00:00Z is in the future" in errors


def test_lag_in_a_hub_that_was_created_again_is_that_of_all_its_events(tool, orders):
    """The checkpoints are above its last event, and nothing was handled."""
    json_of(tool, "reset", "--to", "latest", "--yes")
    orders.recreate_hub("orders")
    with EventHubProducerClient.from_connection_string(
        orders.connection_string_for("orders")
    ) as producer:
        producer.send_batch([EventData("z")] * 3, partition_id="0")
    lags = json_of(tool, "lag")

    assert [p["lag"] for p in lags["partitions"]] == [3, 0, 0, 0]
    assert 0 <= lags["oldest_age_s"] < 600


def test_a_reset_in_a_hub_that_was_created_again_repeats_nothing(tool, orders):
    """Whatever waits in it was never handled, also if there is more than in the former hub."""
    json_of(tool, "reset", "--to", "latest", "--yes")
    orders.recreate_hub("orders")
    with EventHubProducerClient.from_connection_string(
        orders.connection_string_for("orders")
    ) as producer:
        producer.send_batch([EventData("z")] * 200, partition_id="0")
    code, table, errors = tool("reset", *HERE, "--to", "earliest", "--partition", "0", "--dry-run")
    relative = tool("reset", *HERE, "--to", "-5", "--partition", "0", "--dry-run")
    latest = json_of(tool, "reset", "--to", "latest", "--partition", "0", "--yes")["changes"][0]

    assert (code, errors) == (0, "")
    assert "9 (of a former hub)" in table
    assert "again" not in table
    assert (relative[0], "no checkpoint with a sequence number" in relative[2]) == (2, True)
    assert (latest["skipped_count"], latest["repeated_count"]) == (200, 0)


@pytest.mark.parametrize(("count", "words"), [(3, "has no event 39 yet"), (200, "of a former hub")])
def test_a_file_with_positions_of_a_former_hub_is_not_imported(tool, orders, count, words):
    """The new hub's events up to there would never be delivered."""
    json_of(tool, "reset", "--to", "latest", "--yes")
    tool("export", *HERE, "orders.json")
    if count > COUNT:
        orders.recreate_hub("orders")
        with EventHubProducerClient.from_connection_string(
            orders.connection_string_for("orders")
        ) as producer:
            producer.send_batch([EventData("z")] * count, partition_id="0")
    else:
        text = (
            Path("orders.json").read_text().replace('"sequence_number": 0', '"sequence_number": 39')
        )
        Path("orders.json").write_text(text)
    place = ["--eventhub", "orders", "--store", "sqlite:other.db"]
    Path("other.db").touch()
    code, _, errors = tool("import", *place, "orders.json", "--yes")

    assert code == 2
    assert words in errors


def test_lag_in_a_compacted_hub_begins_at_the_first_event_that_is_left(tool, monkeypatch):
    """The numbers between that and the checkpoint have no event any more."""
    with EventHubsEmulator([HubConfiguration("orders", 1, is_compacted=True)]) as hub:
        monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", hub.connection_string)
        with EventHubProducerClient.from_connection_string(
            hub.connection_string_for("orders")
        ) as producer:
            producer.send_event(EventData("x"), partition_key="seldom")
            for number in range(19):
                producer.send_event(EventData("x"), partition_key=f"often {number % 4}")
        everything = json_of(tool, "lag")["lag"]
        json_of(tool, "set", "--partition", "0", "--sequence-number", "0", "--offset", "0", "--yes")
        after_first = json_of(tool, "lag")["lag"]

    assert everything == 20  # at most
    assert after_first == 4


def test_lag_is_shown_in_events_and_seconds(tool):
    """``lag`` works for a group without running processors."""
    json_of(tool, "reset", "--to", "latest", "--yes")
    json_of(tool, "reset", "--to", "-7", "--partition", "0", "--yes")
    lags = json_of(tool, "lag")
    code, table, _ = tool("lag", *HERE)

    assert [p["lag"] for p in lags["partitions"]] == [7, 0, 0, 0]
    assert lags["lag"] == 7
    assert 0 < lags["oldest_age_s"] < 600
    assert (code, table.splitlines()[-1].split()[:2]) == (0, ["all", "7"])


@pytest.mark.parametrize(("partition", "last"), [("0", 39), ("1", 0), ("2", -1)])
def test_a_checkpoint_is_not_set_after_the_last_event(tool, partition, last):
    """A processor would take it for one of a hub that was deleted."""
    at = [*HERE, "--partition", partition, "--offset", "7", "--yes", "--sequence-number"]
    code, out, err = tool("set", *at, str(last + 1))

    assert (code, out) == (2, "")
    known = "nor any other" if last < 0 else f"its last one is {last}"
    assert f"partition {partition} has no event {last + 1} yet, {known}" in err
    before_first = [*at[:-4], "--offset", "-1", "--yes", "--sequence-number", "-1"]
    assert tool("set", *(before_first if last < 0 else [*at, str(last)]))[0] == 0


def test_without_the_hub_a_checkpoint_is_set_anywhere(tool):
    """For a hub that cannot be reached."""
    at = ["--partition", "0", "--offset", "7", "--sequence-number", "99", "--yes"]
    assert tool("set", *HERE, *at, "--without-hub")[0] == 0
    assert tool("set", *HERE, *at)[0] == 2


def test_export_and_import_move_checkpoints_to_another_store_and_group(
    tool, orders, storage, container, monkeypatch
):
    """States are moved, too, except one of another position, which the import names."""
    store_state(orders, 20, b"twenty")
    json_of(tool, "set", "--partition", "1", "--sequence-number", "0", "--offset", "7", "--yes")
    exported = tool("export", *HERE, "orders.json")
    there = ["--eventhub", "orders", "--store", f"blob:{container}"]
    there += ["--consumer-group", "other", "--without-hub"]  # the hub has no such group yet
    monkeypatch.setenv("EVENTPROC_STORAGE_CONNECTION_STRING", storage)
    imported = tool("import", *there, "orders.json", "--yes")
    found = json.loads(tool("list", *there, "--format", "json")[1])
    json_of(tool, "reset", "--partition", "0", "--to", "12", "--keep-state", "--yes")
    code, _, _ = tool("export", *HERE, "out-of-step.json")
    warnings = tool("import", *there, "out-of-step.json", "--yes", "--overwrite")[2]
    after = json.loads(tool("list", *there, "--format", "json")[1])

    assert exported == (0, "2 checkpoints written to orders.json\n", "")
    assert (imported[0], imported[2], code) == (0, "", 0)
    assert positions(found) == {"0": 20, "1": 0}
    assert [c["state_bytes"] for c in found["checkpoints"]] == [6, 0]
    assert "the state of partition 0 belongs to position 20, and is left out" in warnings
    assert positions(after) == {"0": 11, "1": 0}
    assert [c["state_bytes"] for c in after["checkpoints"]] == [0, 0]


def test_partitions_of_a_file_that_the_hub_does_not_have_can_be_left_out(tool):
    """Such as those of a larger hub: ``--partition`` names what is imported."""
    json_of(tool, "reset", "--to", "latest", "--yes")
    contents = json.loads(tool("export", *HERE, "-")[1])
    contents["checkpoints"].append({**contents["checkpoints"][0], "partition_id": "7"})
    Path("larger.json").write_text(json.dumps(contents))
    whole = tool("import", *HERE, "larger.json", "--yes")
    chosen = tool("import", *HERE, "larger.json", "--yes", "--partition", "0")

    assert (whole[0], chosen[0]) == (2, 0)
    assert "7: there is no such partition" in whole[2]


def test_importing_a_file_of_another_hub_needs_another_hub(tool, monkeypatch):
    """Without ``--another-hub`` it is refused; so are files of another version and damaged ones."""
    json_of(tool, "reset", "--to", "latest", "--yes")
    code, out, err = tool("export", *HERE, "-")
    contents = json.loads(out)
    path = Path("orders.json")
    path.write_text(out)
    monkeypatch.delenv("EVENTPROC_CONNECTION_STRING")
    elsewhere = ["--without-hub", "--namespace", "elsewhere", "--eventhub", "orders"]
    elsewhere += ["--store", "sqlite:new.db"]
    refused = tool("import", *elsewhere, str(path), "--yes")
    is_made = Path("new.db").exists()
    imported = tool("import", *elsewhere, str(path), "--yes", "--another-hub", "--partition", "1")
    path.write_text(out.replace('"version": 1', '"version": 2'))
    later = tool("import", *elsewhere, str(path), "--yes")
    path.write_text(out.replace('"sequence_number": 39', '"sequence_number": "39"'))
    damaged = tool("import", *elsewhere, str(path), "--yes")

    assert (code, err) == (0, "")
    assert (contents["format"], contents["version"]) == ("eventproc-checkpoints", 1)
    assert (refused[0], is_made, imported[0]) == (2, False, 0)
    assert "--another-hub" in refused[2]
    assert "1 of 1 moved." in imported[1]
    assert (later[0], damaged[0]) == (2, 2)
    assert "version 2" in later[2]
    assert "Expected `int | null`, got `str` - at `$.checkpoints[0].sequence_number`" in damaged[2]


def test_a_damaged_state_can_be_dropped(tool, orders, storage, container, monkeypatch):
    """A reset to ``+0`` keeps the position and drops the state, so the partition can be served
    again."""
    monkeypatch.setenv("EVENTPROC_STORAGE_CONNECTION_STRING", storage)
    there = ["--eventhub", "orders", "--store", f"blob:{container}"]
    where = ["--partition", "0", "--format", "json"]
    tool("reset", *there, "--to", "8", "--yes", *where)
    with ContainerClient.from_connection_string(storage, container) as azure:
        (name,) = azure.list_blob_names(name_starts_with=f"127.0.0.1:{orders.port}/orders/")
        blob = azure.get_blob_client(name)
        metadata = blob.get_blob_properties().metadata
        blob.upload_blob(b"evpstate, torn", metadata=metadata, overwrite=True)
    listed = json.loads(tool("list", *there, *where)[1])["checkpoints"]
    refused = tool("export", *there, "-")
    kept = tool("reset", *there, "--to", "+0", "--keep-state", "--yes", *where)
    dropped = tool("reset", *there, "--to", "+0", "--yes", *where)
    after = json.loads(tool("list", *there, *where)[1])["checkpoints"]

    assert [(c["sequence_number"], c["is_state_damaged"]) for c in listed] == [(7, True)]
    assert refused[0] == 2
    assert "--to +0" in refused[2]
    assert kept[0] == 1
    assert json.loads(dropped[1])["changes"][0]["state"] == "dropped (damaged)"
    assert [(c["sequence_number"], c["is_state_damaged"]) for c in after] == [(7, False)]
