"""``eventproc run`` and ``eventproc status`` with one process, seen from outside."""

import json
import shutil
import signal
from textwrap import dedent

import pytest
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient
from azure.storage.blob import ContainerClient

from eventproc.emulator import EventHubsEmulator

HANDLER = """
    from eventproc import PartitionHandler

    class Count(PartitionHandler):
        async def process_events(self, context, events):
            context.state = str(int(context.state or 0) + len(events)).encode()
            print(context.partition_id, events[-1].sequence_number, flush=True)
"""
FAST = ["--interval", "1s", "--expiration", "6s", "--checkpoint-events", "1"]
HERE = ["--eventhub", "orders", "--store", "sqlite:group.db"]


@pytest.fixture(name="hub")
def _hub(orders, tmp_path):
    """Publish two events to each of four partitions, and write a handler to the folder."""
    (tmp_path / "shop.py").write_text(dedent(HANDLER))
    with EventHubProducerClient.from_connection_string(
        orders.connection_string_for("orders")
    ) as producer:
        for partition_id in "0123":
            producer.send_batch([EventData("x"), EventData("y")], partition_id=partition_id)
    return {"EVENTPROC_CONNECTION_STRING": orders.connection_string}


def status(command, hub, *options):
    """Return the JSON that ``status`` prints."""
    code, out, err = command.run("status", *HERE, "--format", "json", *options, **hub)

    assert (code, err) == (0, "")
    return json.loads(out)


def start_and_wait(command, hub, *options):
    """Start a processor, and return it when all eight events were handled."""
    process = command.start("run", "shop:Count", *HERE, *FAST, "--owner-id", "one", *options, **hub)
    seen: set[str] = set()
    while len(seen) < 4:
        partition_id, sequence_number = process.stdout.readline().split()
        if sequence_number == "1":
            seen.add(partition_id)
    return process


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_a_signal_stops_run_and_releases_its_partitions(command, hub, number):
    """The processor deletes its member record and exits with 0; checkpoints stay."""
    process = start_and_wait(command, hub)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    found = status(command, hub)
    events = [json.loads(line)["event"] for line in err.splitlines()]

    assert process.returncode == 0
    assert {"signal_received", "partition_released", "processor_stopped"} <= set(events)
    assert [p["owner_id"] for p in found["partitions"]] == [None] * 4
    assert [(p["sequence_number"], p["lag"]) for p in found["partitions"]] == [(1, 0)] * 4
    assert found["members"] == []


def test_imports_are_excluded_from_garbage_collections(command, hub, tmp_path):
    """They live as long as the process, so to visit them again and again is in vain."""
    (tmp_path / "shop.py").write_text(
        "import gc\n"
        "from eventproc import PartitionHandler\n"
        "class Count(PartitionHandler):\n"
        "    async def process_events(self, context, events):\n"
        "        print(gc.get_freeze_count() > len(gc.get_objects()), flush=True)\n"
    )
    process = command.start("run", "shop:Count", *HERE, *FAST, **hub)

    assert process.stdout.readline() == "True\n"


def test_run_with_stop_at_eof_ends_with_its_input(command, hub):
    """A program that starts the command ends it by its own end."""
    process = start_and_wait(command, hub, "--stop-at-eof")
    process.communicate(timeout=60)

    assert process.returncode == 0


def test_status_shows_owners_and_changes_nothing(command, hub):
    """``status`` shows owner, position and lag, and takes no link or record from the owner."""
    process = start_and_wait(command, hub, "--log-format", "text")
    before, again = status(command, hub), status(command, hub)
    code, table, _ = command.run("status", *HERE, "--expiration", "6s", **hub)
    process.terminate()
    _, err = process.communicate(timeout=60)

    assert [p["owner_id"] for p in before["partitions"]] == ["one"] * 4
    assert [p["is_expired"] for p in before["partitions"]] == [False] * 4
    assert [m["owner_id"] for m in before["members"]] == ["one"]
    assert before["members"] == again["members"]
    assert (code, table.count("one")) == (0, 5)
    assert "ownership_lost" not in err
    assert "receiver_failed" not in err


def test_status_without_a_hub_shows_the_records(command, hub, orders):
    """With ``--without-hub`` no credential is needed, and the lag is unknown."""
    start_and_wait(command, hub).kill()
    namespace = f"127.0.0.1:{orders.port}"
    found = status(command, {}, "--namespace", namespace, "--without-hub")

    assert [p["owner_id"] for p in found["partitions"]] == ["one"] * 4
    assert [p["lag"] for p in found["partitions"]] == [None] * 4


def test_status_watch_repeats_until_it_is_interrupted(command, hub):
    """Ctrl+C ends it with exit code 130 and without a traceback."""
    start_and_wait(command, hub).kill()
    watching = command.start(
        "status", *HERE, "--format", "json", "--watch", "--every", "100ms", **hub
    )
    reports = [json.loads(watching.stdout.readline()) for _ in range(2)]
    watching.send_signal(signal.SIGINT)
    _, err = watching.communicate(timeout=60)

    assert reports[0]["as_of"] < reports[1]["as_of"]
    assert (watching.returncode, err) == (130, "")


def test_run_and_status_work_with_blob_storage(command, hub, storage, container):
    """The environment has the secrets of hub and storage."""
    both = hub | {"EVENTPROC_STORAGE_CONNECTION_STRING": storage}
    here = ["--eventhub", "orders", "--store", f"blob:{container}"]
    process = command.start("run", "shop:Count", *here, *FAST, "--owner-id", "one", **both)
    for _ in range(4):
        process.stdout.readline()
    code, out, _ = command.run("status", *here, "--format", "json", **both)
    process.terminate()
    process.communicate(timeout=60)

    assert (code, process.returncode) == (0, 0)
    assert [p["owner_id"] for p in json.loads(out)["partitions"]] == ["one"] * 4


PICKY = """
    import asyncio
    from eventproc import PartitionHandler

    class Picky(PartitionHandler):
        under_way = set()

        async def process_event(self, context, event):
            key = event.properties["customer"]
            if event.body == b"bad":
                raise ValueError("cannot read it")
            self.under_way.add(key)
            while len(self.under_way) < 2:  # Each call waits for the other, so there are two lanes.
                await asyncio.sleep(0.01)
            print(event.body.decode(), flush=True)
"""
CAREFUL = [
    *(
        "--key-concurrency",
        "2",
        "--key-property",
        "customer",
        "--attempts",
        "2",
        "--deliveries",
        "5",
    ),
    *("--stall-timeout", "1m", "--rate", "1000", "--partition-rate", "500"),
]


@pytest.mark.parametrize("kind", [pytest.param("eventhub", marks=pytest.mark.long), "blob"])
def test_failed_events_go_to_the_dead_letter_sink_of_the_command_line(
    command, tmp_path, storage, container, kind
):
    """Two keys are handled at once, and the event that cannot be read is stored in hub or
    container."""
    (tmp_path / "shop.py").write_text(dedent(PICKY))
    with EventHubsEmulator({"orders": 1, "dead": 1}) as emulator:
        sent = [("good-1", "Ada"), ("bad", "Ada"), ("good-2", "Bob"), ("good-3", "Ada")]
        with EventHubProducerClient.from_connection_string(
            emulator.connection_string_for("orders")
        ) as producer:
            batch = producer.create_batch(partition_id="0")
            for body, customer in sent:
                event = EventData(body)
                event.properties = {"customer": customer}
                batch.add(event)
            producer.send_batch(batch)
        process = command.start(
            *("run", "shop:Picky", *HERE, *FAST, *CAREFUL, "--stop-at-eof"),
            *("--dead-letters", "eventhub:dead" if kind == "eventhub" else f"blob:{container}"),
            EVENTPROC_CONNECTION_STRING=emulator.connection_string,
            EVENTPROC_STORAGE_CONNECTION_STRING=storage,
        )
        printed = {process.stdout.readline().strip() for _ in range(3)}
        process.communicate(timeout=60)
        with EventHubConsumerClient.from_connection_string(
            emulator.connection_string_for("dead"), "$Default"
        ) as consumer:
            in_hub = consumer.get_partition_properties("0")["last_enqueued_sequence_number"] + 1
    with ContainerClient.from_connection_string(storage, container) as client:
        in_blobs = len(list(client.list_blobs("dead-letters/")))

    assert process.returncode == 0
    assert printed == {"good-1", "good-2", "good-3"}
    assert (in_hub, in_blobs) == ((1, 0) if kind == "eventhub" else (0, 1))


TYPED = """
    from eventproc import PartitionHandler
    from eventproc.decoders import JsonDecoder

    class Numbers(PartitionHandler[list[int]]):
        decode = JsonDecoder(list[int])

        async def process_value(self, context, value, event):
            print(sum(value), flush=True)
"""


@pytest.mark.long
def test_bodies_that_cannot_be_decoded_become_dead_letters_without_a_limit(
    command, tmp_path, storage, container
):
    """All other failures are retried for ever."""
    (tmp_path / "shop.py").write_text(dedent(TYPED))
    with EventHubsEmulator({"orders": 1}) as emulator:
        with EventHubProducerClient.from_connection_string(
            emulator.connection_string_for("orders")
        ) as producer:
            producer.send_batch([EventData(body) for body in ("[1, 2]", "[1, x]", "[3, 4]")])
        process = command.start(
            *("run", "shop:Numbers", *HERE, *FAST, "--stop-at-eof"),
            *("--dead-letters", f"blob:{container}"),
            EVENTPROC_CONNECTION_STRING=emulator.connection_string,
            EVENTPROC_STORAGE_CONNECTION_STRING=storage,
        )
        printed = [process.stdout.readline().strip() for _ in range(2)]
        process.communicate(timeout=60)
    with ContainerClient.from_connection_string(storage, container) as client:
        stored = list(client.list_blobs("dead-letters/"))

    assert (process.returncode, printed, len(stored)) == (0, ["3", "7"], 1)


@pytest.mark.parametrize("change", ["deleted", pytest.param("replaced", marks=pytest.mark.long)])
def test_a_deleted_or_replaced_store_file_ends_the_run(command, hub, tmp_path, change):
    """Otherwise processors that start later would form a second group; the message says what to
    do."""
    process = start_and_wait(command, hub)
    path = tmp_path / "group.db"
    if change == "replaced":
        shutil.copy(path, tmp_path / "backup.db")
        (tmp_path / "backup.db").rename(path)
    else:
        path.unlink()
    _, err = process.communicate(timeout=60)

    assert process.returncode == 2
    assert "Stop all processors, put the file back" in err.splitlines()[-1]
    assert "never retrieved" not in err


def test_run_refuses_a_damaged_store_file(command, hub, tmp_path):
    """The exit code 2 means that a restart is of no use."""
    start_and_wait(command, hub, "--stop-at-eof").communicate(timeout=60)
    path = tmp_path / "group.db"
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)
    code, out, err = command.run("run", "shop:Count", *HERE, *FAST, **hub)

    assert (code, out) == (2, "")
    assert "is damaged" in err
    assert "restore a backup" in err
    assert "Traceback" not in err
