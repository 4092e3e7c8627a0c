"""Processes of commit ``dbcb3e1`` and of today in one group: real processes, one Azurite container.

Blobs only: a SQLite file that today's version opened has a newer schema, and older versions refuse
it, which is tested here, too. ``docs/wire-format.md`` says what each version may read.
"""

import json
import signal
import subprocess
import tarfile
import time
from collections import Counter
from io import BytesIO
from pathlib import Path
from textwrap import dedent

import pytest
from azure.eventhub import EventHubProducerClient
from azure.storage.blob import ContainerClient

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc.emulator import EventHubsEmulator
from tests.integration.cli.conftest import Command
from tests.integration.delivery.fleet import ROOT, send

OLDER = "dbcb3e1"
PARTITION_COUNT = 8
FAST = ["--interval", "500ms", "--expiration", "15s", "--checkpoint-interval", "300ms"]
TIMEOUT_S = 120
STABLE_S = 2
HANDLER = """
    import json, os, pathlib
    import eventproc

    JOURNAL = os.open("journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    HOME = str(pathlib.Path(eventproc.__file__).parents[1])

    class Record(eventproc.PartitionHandler):
        async def process_events(self, context, events):
            for event in events:
                facts = [os.environ["EVENTPROC_OWNER_ID"], HOME, context.partition_id]
                line = json.dumps([*facts, event.sequence_number]) + "\\n"
                os.write(JOURNAL, line.encode())
"""


@pytest.fixture(name="older", scope="module")
def _older(tmp_path_factory) -> Path:
    """Return a folder with the packages of the older version."""
    made = subprocess.run(
        ["git", "-C", ROOT, "archive", OLDER, "eventproc", "checkpointstores"],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"commit {OLDER} is not in this checkout: {made.stderr.decode().strip()}")
    folder: Path = tmp_path_factory.mktemp("older")
    with tarfile.open(fileobj=BytesIO(made.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(name="group")
def _group(tmp_path, older, storage, container):
    """Yield a group without processors; what still runs at the end is killed."""
    (tmp_path / "shop.py").write_text(dedent(HANDLER))
    command = Command(tmp_path)
    try:
        with EventHubsEmulator({"orders": PARTITION_COUNT}) as emulator:
            hub = emulator.connection_string_for("orders")
            with EventHubProducerClient.from_connection_string(hub) as producer:
                with ContainerClient.from_connection_string(storage, container) as client:
                    yield Group(command, tmp_path, older, emulator, producer, client, storage)
    finally:
        command.close()


class Group:
    """Processes of both versions, named ``old-...`` and ``new-...``. Events arrive all the time."""

    def __init__(self, command, folder, older, emulator, producer, client, storage):
        self._command, self._folder, self._older = command, folder, older
        self._emulator, self._producer, self._client = emulator, producer, client
        self._secrets = {
            "EVENTPROC_CONNECTION_STRING": emulator.connection_string,
            "EVENTPROC_STORAGE_CONNECTION_STRING": storage,
        }
        self._process_by_name = {}

    def start(self, names, options=(), **env):
        """Start processors: those named ``old-...`` on the older version."""
        for name in names:
            home = self._older if name.startswith("old") else ROOT
            self._process_by_name[name] = self._command.start(
                *("run", "shop:Record", "--eventhub", "orders", *FAST, *options),
                *("--store", f"blob:{self._client.container_name}", "--log-level", "error"),
                **self._secrets,
                **env,
                PYTHONPATH=str(home),
                PYTHONFAULTHANDLER="1",
                EVENTPROC_OWNER_ID=name,
            )

    def stop(self, *names):
        """Send SIGTERM to all of these, and assert that each exits with 0 and prints no error."""
        for name in names:
            self._process_by_name[name].terminate()
        for name in names:
            process = self._process_by_name.pop(name)
            _, err = process.communicate(timeout=TIMEOUT_S)

            assert (name, process.returncode, err) == (name, 0, "")

    def owned(self):
        """Return how many partitions each processor owns, by the ownership blobs."""
        blobs = self._client.list_blobs(include=["metadata"])
        return Counter(blob.metadata["ownerid"] for blob in blobs if "/ownership/" in blob.name)

    def _statuses(self):
        """Return the status in each member blob."""
        blobs = self._client.list_blobs(include=["metadata"])
        return {
            blob.metadata["ownerid"]: blob.metadata["status"]
            for blob in blobs
            if "/member/" in blob.name
        }

    def until_owned(self, counts):
        """Publish until the partitions are shared like this, and stay so for a while."""
        give_up_s = time.monotonic() + TIMEOUT_S
        since_s = time.monotonic()
        while time.monotonic() < since_s + STABLE_S:
            self._publish()
            if self.owned() != counts:
                since_s = time.monotonic()
            if time.monotonic() > give_up_s:
                self._fail(f"{dict(self.owned())}, and not {counts}")

    def until_standby(self, name):
        """Publish until this processor's member blob has the status for standby."""
        give_up_s = time.monotonic() + TIMEOUT_S
        while self._statuses().get(name) != "reserve":
            self._publish()
            if time.monotonic() > give_up_s:
                self._fail(f"{name} is not on standby: {self._statuses()}")

    def _fail(self, what):
        """Fail, and say at which line each thread of each process was."""
        for process in self._process_by_name.values():
            process.send_signal(signal.SIGABRT)
        threads = {name: p.communicate()[1] for name, p in self._process_by_name.items()}
        pytest.fail("\n".join([what, *(f"{name}: {text}" for name, text in threads.items())]))

    def _publish(self):
        """Send a few events to each partition, while all processors run."""
        for name, process in self._process_by_name.items():
            assert process.poll() is None, (name, process.returncode, process.communicate())
        for partition_id in self._emulator.partition_ids("orders"):
            send(self._producer, range(3), partition_id)
        time.sleep(0.1)

    def deliveries(self):
        """Return each delivery: owner id, folder of the sources, partition and number."""
        lines = (self._folder / "journal").read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def check_all_handled_once(self):
        """Wait for the last events; assert that each was handled, and none of them twice."""
        published = {
            (partition_id, event.sequence_number)
            for partition_id in self._emulator.partition_ids("orders")
            for event in self._emulator.events("orders", partition_id)
        }
        give_up_s = time.monotonic() + TIMEOUT_S
        while len(handled := Counter((p, n) for _, _, p, n in self.deliveries())) < len(published):
            assert time.monotonic() < give_up_s, published - set(handled)
            time.sleep(0.1)

        assert set(handled) == published
        assert {event: times for event, times in handled.items() if times > 1} == {}

    def homes(self):
        """Return each processor with the folder of the sources that it ran."""
        return {(name, home) for name, home, _, _ in self.deliveries()}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("lease_mode", ["partition", "session"])
def test_processors_of_both_versions_share_a_group(group, older, lease_mode):
    """Both versions balance, hand over to each other at a SIGTERM, and repeat no event."""
    leases = ["--lease-mode", lease_mode]
    group.start(["old-1", "old-2"], leases)
    group.until_owned({"old-1": 4, "old-2": 4})
    group.start(["new-1", "new-2"], leases)
    group.until_owned({"old-1": 2, "old-2": 2, "new-1": 2, "new-2": 2})
    group.stop("old-1", "old-2")
    group.until_owned({"new-1": 4, "new-2": 4})
    group.start(["old-1", "old-2"], leases)
    group.until_owned({"old-1": 2, "old-2": 2, "new-1": 2, "new-2": 2})
    group.stop("new-1", "new-2")
    group.until_owned({"old-1": 4, "old-2": 4})
    group.check_all_handled_once()
    group.stop("old-1", "old-2")

    assert group.homes() == {
        *(("old-1", str(older)), ("old-2", str(older))),
        *(("new-1", str(ROOT)), ("new-2", str(ROOT))),
    }


@pytest.mark.timeout(400)
def test_a_rolling_deployment_from_the_older_version_moves_each_partition_once(group):
    """The stored words ``generation`` and ``reserve`` mean the same to both versions: a processor
    of the new deployment waits, and takes what one of the old deployment leaves.
    """
    group.start(["old-1", "old-2"], EVENTPROC_GENERATION="1")
    group.until_owned({"old-1": 4, "old-2": 4})
    before = len(group.deliveries())
    group.start(["new-1"], EVENTPROC_DEPLOYMENT_ID="2")
    group.until_standby("new-1")
    group.until_owned({"old-1": 4, "old-2": 4})
    group.stop("old-1")
    group.until_owned({"new-1": 4, "old-2": 4})
    group.start(["new-2"], EVENTPROC_DEPLOYMENT_ID="2")
    group.until_standby("new-2")
    group.until_owned({"new-1": 4, "old-2": 4})
    group.stop("old-2")
    group.until_owned({"new-1": 4, "new-2": 4})
    group.check_all_handled_once()
    group.stop("new-1", "new-2")
    servings = {(name, partition_id) for name, _, partition_id, _ in group.deliveries()[before:]}

    assert len(servings) == 2 * PARTITION_COUNT


async def test_the_older_version_refuses_a_sqlite_file_that_this_one_opened(older, tmp_path):
    """Its schema is newer, and the older version cannot know what else changed: exit code 2."""
    async with SqliteCheckpointStore(tmp_path / "group.db"):
        pass
    command = Command(tmp_path)
    code, _, err = command.run(
        *("status", "--eventhub", "orders", "--namespace", "localhost"),
        *("--store", "sqlite:group.db"),
        PYTHONPATH=str(older),
    )
    command.close()

    assert code == 2
    assert "was written by another version of eventproc (its tables have version 7" in err
