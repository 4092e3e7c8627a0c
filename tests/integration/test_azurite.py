"""The Azurite that tests and the demo use: it starts, stops, pauses, and never outlives its
parent."""

import http.client
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from azure.core.exceptions import AzureError
from azure.storage.blob import BlobServiceClient

from eventproc.errors import ConfigurationError
from eventproc.testing._azurite import (
    END_WITH_PARENT,
    PROGRAM_VARIABLE,
    Azurite,
    ChildServer,
    find_azurite,
)

AIOHTTP_KEEPS_S = 15
"""aiohttp uses a connection again if it was idle for less."""

ORPHAN_MAKER = """
import sys
from eventproc.testing._azurite import Azurite
Azurite().start()
print("started", flush=True)
sys.stdin.read()
"""


def containers(azurite, **options):
    """List the containers, once and without retries."""
    connection = azurite.connection_string
    with BlobServiceClient.from_connection_string(connection, retry_total=0, **options) as client:
        return [container.name for container in client.list_containers()]


def create(azurite, name):
    """Create a container."""
    with BlobServiceClient.from_connection_string(azurite.connection_string) as client:
        client.create_container(name)


def test_the_storage_fixture_is_real_storage(storage, container):
    """Azure's client finds the container of the fixture."""
    with BlobServiceClient.from_connection_string(storage) as client:
        names = [found.name for found in client.list_containers(name_starts_with=container)]

    assert names == [container]


@pytest.mark.parametrize("service", ["endpoint", "table_endpoint"])
def test_the_client_is_the_first_to_close_an_idle_connection(tables, service):
    """A request on a connection that the server just closes has no answer: a write is unknown."""
    address = getattr(tables, service).split("/")[2]
    connection = http.client.HTTPConnection(address, timeout=20)
    connection.request("GET", "/")
    announced = connection.getresponse().headers["Keep-Alive"]
    connection.close()

    assert int(announced.removeprefix("timeout=")) > AIOHTTP_KEEPS_S


def test_a_restart_keeps_data_and_address(azurite):
    """After an outage it is the same storage at the same address."""
    create(azurite, "survivor")
    before = azurite.connection_string
    azurite.restart()

    assert (azurite.connection_string, containers(azurite)) == (before, ["survivor"])


def test_a_start_without_location_is_empty():
    """Without a location, data are only in memory."""
    with Azurite() as forgetful:
        create(forgetful, "forgotten")
        forgetful.restart()

        assert containers(forgetful) == []


LATE_LISTENER = """
console.log("answers requests");
setTimeout(() => process.once("SIGTERM", () => { console.log("saved"); server.close(); }), 200);
const server = require("net").createServer().listen(0, "127.0.0.1");
"""


def started(node, *arguments):
    """Start a program of Node.js as Azurite is started."""
    return subprocess.Popen(
        [node, END_WITH_PARENT, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_an_early_sigterm_still_saves_the_data():
    """Azurite answers requests before it handles SIGTERM; an early signal is not lost."""
    node = find_azurite()[0]
    with started(node, "--eval", LATE_LISTENER) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.terminate()
        rest = process.stdout.read()

    assert (first, rest, process.returncode) == ("answers requests\n", "saved\n", 0)


GARBAGE = """
const persistence = "azurite/dist/src/common/persistence/LokiExtentMetadataStore.js";
const Extents = require(persistence).default;
const extents = new Extents("memory", true);
extents.init().then(async () => {
  const collection = extents.db.getCollection(extents.EXTENTS_COLLECTION);
  for (const id of ["a", "b", "c"]) {
    await extents.updateExtent({ id, size: 1, lastModifiedInMS: 1 });
  }
  collection.ensureIndex = () => console.log("sorts everything");
  for (const id of ["b", "missing", "c"]) await extents.deleteExtent(id);
  console.log(collection.data.map(({ id }) => id).join());
  process.exit();
});
"""


def test_the_content_of_overwritten_blobs_is_removed_quickly(tmp_path):
    """Azurite sorted its index for each, and answered nothing for a minute, every ten minutes."""
    node, main = find_azurite()
    modules = next(found for found in Path(main).parents if found.name == "node_modules")
    (tmp_path / "node_modules").symlink_to(modules)
    program = tmp_path / "program.cjs"
    program.write_text(GARBAGE, "utf-8")

    with started(node, str(program)) as process:
        assert process.stdout is not None
        output = process.stdout.read()

    assert output == "a\n"


def test_a_stopped_azurite_refuses_connections(azurite):
    """Starting or stopping it twice is harmless."""
    azurite.start()
    azurite.stop()
    azurite.stop()

    with pytest.raises(AzureError):
        containers(azurite)


def test_a_killed_azurite_can_be_started_again(azurite):
    """``is_running`` is false after a kill and true after ``start``."""
    azurite.kill()
    was_running = azurite.is_running
    azurite.start()

    assert (was_running, azurite.is_running) == (False, True)


def test_a_paused_azurite_hangs_until_it_is_resumed(azurite):
    """While paused it neither answers nor refuses."""
    azurite.pause()

    with pytest.raises(AzureError):
        containers(azurite, read_timeout=0.3)

    azurite.resume()

    assert containers(azurite) == []


def test_a_paused_azurite_can_be_stopped(azurite):
    """``stop`` resumes it first, because a paused process does not handle SIGTERM."""
    azurite.pause()
    began = time.monotonic()
    azurite.stop()

    assert time.monotonic() - began < timedelta(seconds=5).total_seconds()


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
def test_azurite_ends_when_its_parent_is_killed():
    """After SIGKILL of its parent, Azurite notices that by itself."""
    maker = subprocess.Popen(
        [sys.executable, "-c", ORPHAN_MAKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with maker:
        assert maker.stdout is not None
        assert maker.stdout.readline() == "started\n"
        child = next(pid for pid in processes() if parent_of(pid) == maker.pid)
        maker.kill()
    deadline = time.monotonic() + 10
    while child in processes() and time.monotonic() < deadline:
        time.sleep(0.05)  # the process of another parent cannot be awaited

    assert child not in processes()


def processes():
    """Return the ids of all processes, without zombies."""
    numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in numbers if parent_of(pid)]


def parent_of(pid):
    """Return a process's parent, or 0 if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:
        return 0
    state, parent = stat.rpartition(")")[2].split()[:2]
    return 0 if state == "Z" else int(parent)


def test_a_program_that_does_not_exist_is_an_error_that_names_it(monkeypatch):
    """The message names the variable and its path."""
    monkeypatch.setenv(PROGRAM_VARIABLE, "/nowhere/azurite-blob")

    with pytest.raises(ConfigurationError, match=r"EVENTPROC_AZURITE names /nowhere/azurite-blob"):
        find_azurite()


def test_the_error_of_a_failed_start_has_the_programs_output(monkeypatch, tmp_path):
    """A program that ends at once is an error that quotes its output."""
    program = tmp_path / "azurite-blob"
    program.write_text("#!/bin/sh\necho no room left\nexit 1\n", "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv(PROGRAM_VARIABLE, str(program))

    with pytest.raises(RuntimeError, match="no room left"):
        Azurite().start()


def test_a_start_without_output_times_out(monkeypatch, tmp_path):
    """After ``start_timeout`` the start is an error."""
    program = tmp_path / "azurite-blob"
    program.write_text("#!/bin/sh\nexec sleep 60\n", "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv(PROGRAM_VARIABLE, str(program))

    with pytest.raises(RuntimeError, match="did not start"):
        Azurite(start_timeout=timedelta(seconds=0.2)).start()


def test_the_address_before_the_first_start_is_an_error():
    """There is no port before the first start."""
    with pytest.raises(RuntimeError, match="never started"):
        _ = Azurite().connection_string


class Broken(ChildServer):
    """Does not start."""

    is_stopped = False

    def start(self):
        raise RuntimeError("did not start")

    def stop(self):
        self.is_stopped = True


def test_a_server_that_did_not_start_is_stopped():
    """Its process and pipes would be left."""
    server = Broken()
    with pytest.raises(RuntimeError, match="did not start"), server:
        pass

    assert server.is_stopped
