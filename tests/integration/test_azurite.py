"""The storage that tests and the demo stand on: it starts, stops, hangs, and is never left over."""

import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from azure.core.exceptions import AzureError
from azure.storage.blob import BlobServiceClient

from eventproc.errors import ConfigurationError
from eventproc.testing.servers.azurite import MANNERS, PROGRAM_VARIABLE, Azurite, find_azurite

ORPHAN_MAKER = """
import sys
from eventproc.testing.servers.azurite import Azurite
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


def test_storage_is_real(storage, container):
    """The session's storage answers the genuine client."""
    with BlobServiceClient.from_connection_string(storage) as client:
        names = [found.name for found in client.list_containers(name_starts_with=container)]

    assert names == [container]


def test_data_and_address_survive_a_restart(azurite):
    """A store that comes back after an outage is the same store at the same address."""
    create(azurite, "survivor")
    before = azurite.connection_string
    azurite.restart()

    assert (azurite.connection_string, containers(azurite)) == (before, ["survivor"])


def test_in_memory_every_start_is_empty():
    """Without a location nothing is left on the disk, and nothing is remembered."""
    with Azurite() as forgetful:
        create(forgetful, "forgotten")
        forgetful.restart()

        assert containers(forgetful) == []


LATE_LISTENER = """
console.log("answers requests");
setTimeout(() => process.once("SIGTERM", () => { console.log("saved"); server.close(); }), 200);
const server = require("net").createServer().listen(0, "127.0.0.1");
"""


def test_a_stop_that_comes_early_still_saves():
    """Azurite answers before it listens to SIGTERM; on a busy machine that is long enough."""
    node = find_azurite()[0]
    with subprocess.Popen(
        [node, MANNERS, "--eval", LATE_LISTENER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.terminate()
        rest = process.stdout.read()

    assert (first, rest, process.returncode) == ("answers requests\n", "saved\n", 0)


def test_a_stopped_one_refuses(azurite):
    """An outage is a refused connection, and starting twice is harmless."""
    azurite.start()
    azurite.stop()
    azurite.stop()

    with pytest.raises(AzureError):
        containers(azurite)


def test_a_killed_one_can_be_started_again(azurite):
    """After a crash it is not running, and start brings it back."""
    azurite.kill()
    was_running = azurite.is_running
    azurite.start()

    assert (was_running, azurite.is_running) == (False, True)


def test_a_paused_one_hangs_until_it_is_resumed(azurite):
    """A store that neither answers nor refuses is the worst kind; here is one."""
    azurite.pause()

    with pytest.raises(AzureError):
        containers(azurite, read_timeout=0.3)

    azurite.resume()

    assert containers(azurite) == []


def test_a_paused_one_can_be_stopped(azurite):
    """A frozen process would sleep through a plain SIGTERM."""
    azurite.pause()
    began = time.monotonic()
    azurite.stop()

    assert time.monotonic() - began < timedelta(seconds=5).total_seconds()


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
def test_none_is_left_over_when_its_user_is_killed():
    """SIGKILL leaves no chance to clean up: Azurite itself must notice."""
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
        time.sleep(0.05)  # another program's end can only be watched

    assert child not in processes()


def processes():
    """Return the ids of all processes that live (and are not merely waiting to be buried)."""
    numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in numbers if parent_of(pid)]


def parent_of(pid):
    """Return a process's parent, or 0 for one that is gone or dead."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:
        return 0
    state, parent = stat.rpartition(")")[2].split()[:2]
    return 0 if state == "Z" else int(parent)


def test_a_wrong_program_is_named(monkeypatch):
    """A path that leads nowhere is told before anything is tried."""
    monkeypatch.setenv(PROGRAM_VARIABLE, "/nowhere/azurite-blob")

    with pytest.raises(ConfigurationError, match=r"EVENTPROC_AZURITE names /nowhere/azurite-blob"):
        find_azurite()


def test_a_program_that_ends_is_quoted(monkeypatch, tmp_path):
    """What did not start says why, in its own words."""
    program = tmp_path / "azurite-blob"
    program.write_text("#!/bin/sh\necho no room left\nexit 1\n", "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv(PROGRAM_VARIABLE, str(program))

    with pytest.raises(RuntimeError, match="no room left"):
        Azurite().start()


def test_a_program_that_says_nothing_is_given_up(monkeypatch, tmp_path):
    """A start that takes too long is an error, not a wait without end."""
    program = tmp_path / "azurite-blob"
    program.write_text("#!/bin/sh\nexec sleep 60\n", "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv(PROGRAM_VARIABLE, str(program))

    with pytest.raises(RuntimeError, match="did not start"):
        Azurite(start_timeout=timedelta(seconds=0.2)).start()


def test_an_address_before_the_start_is_refused():
    """There is no port before the first start, and a made-up one would mislead."""
    with pytest.raises(RuntimeError, match="never started"):
        _ = Azurite().connection_string
