"""``--capture``: what a group runs, shows and moves with files; and forms that are refused."""

import asyncio
import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from textwrap import dedent

import pytest

from eventproc import ConfigurationError
from eventproc._command import main
from eventproc._command.arguments.access import StorageAccess
from eventproc._command.arguments.capture import with_capture
from eventproc.sources.capture import BlobCaptureFiles, CapturedHub, FolderCaptureFiles
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from tests.integration.capture.conftest import publish

STORAGE = "AccountName=acme;AccountKey=c2VjcmV0;EndpointSuffix=core.windows.net"

HANDLER = """
    import os, signal
    from eventproc import PartitionHandler

    class Orders(PartitionHandler):
        async def process_events(self, context, events):
            for event in events:
                print(event.sequence_number, flush=True)
                if event.sequence_number == 299:
                    os.kill(os.getpid(), signal.SIGTERM)
"""


@pytest.fixture(name="between")
def _between(emulator):
    """Publish 300 events, which are captured; return a time before event 120 and after 119."""
    asyncio.run(publish(emulator, "0", 0, 120))
    time.sleep(0.01)  # Times of events are in milliseconds.
    between = datetime.now(UTC)
    time.sleep(0.01)
    asyncio.run(publish(emulator, "0", 120, 300))
    return between.isoformat()


@pytest.fixture(name="tool")
def _tool(emulator, folder, between, tmp_path, monkeypatch, capsys):
    """Return a function that runs the command."""
    assert between, "the events are there"
    emulator.stop()
    emulator.start()
    (tmp_path / "shop.py").write_text(dedent(HANDLER))
    (tmp_path / "group.db").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", emulator.connection_string)
    monkeypatch.setenv("EVENTPROC_EVENTHUB", "orders")
    monkeypatch.setenv("EVENTPROC_STORE", "sqlite:group.db")
    monkeypatch.setenv("EVENTPROC_CAPTURE", f"folder:{folder}")

    def run(*arguments):
        code = main(list(arguments))
        return code, capsys.readouterr().out

    return run


@pytest.mark.parametrize("is_time", [True, False])
def test_an_event_that_only_files_have_is_a_target_of_reset_and_the_lag_counts_them(
    tool, between, is_time
):
    code, _ = tool("checkpoints", "reset", "--partition", "0", "--to", "earliest", "--yes")
    assert code == 0
    _, out = tool("checkpoints", "lag", "--partition", "0", "--format", "json")
    (lag,) = json.loads(out)["partitions"]
    assert lag["lag"] == 300

    target = between if is_time else "120"
    assert tool("checkpoints", "reset", "--partition", "0", "--to", target, "--yes")[0] == 0
    (moved,) = json.loads(tool("checkpoints", "list", "--format", "json")[1])["checkpoints"]
    assert moved["sequence_number"] == 119


@pytest.mark.usefixtures("tool")
def test_run_reads_what_the_hub_has_deleted():
    pace = ["--interval", "1s", "--expiration", "6s"]
    done = subprocess.run(
        [sys.executable, "-m", "eventproc", "run", "shop:Orders", *pace],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(number) for number in range(300)]


@pytest.mark.parametrize("kind", ["blob", "folder"])
def test_settings_follow_the_question_mark(kind):
    names = "a/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}{Minute}{Second}"
    live = MemoryEventSource(MemoryHub(1))
    source = with_capture(
        live,
        f"{kind}:captured?format={names}&since=2026-01-31T08:00:00Z&lost=skip",
        StorageAccess(storage_connection_string=STORAGE),
    )
    assert isinstance(source, CapturedHub)
    files = source._capture

    assert isinstance(files, BlobCaptureFiles if kind == "blob" else FolderCaptureFiles)
    assert files.name_format == names
    assert files.since == datetime(2026, 1, 31, 8, tzinfo=UTC)
    assert source._skips_lost


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        ("captured", "blob:CONTAINER or folder:PATH"),
        ("blob:", "blob:CONTAINER"),
        ("blob:captured?formats=x", "'formats=x'"),
        ("blob:captured?lost=keep", "'lost=keep'"),
        ("blob:captured?since=yesterday", "2026-01-31T08:00:00Z"),
        ("folder:captured?format=x", "lacks {PartitionId}"),
        ("blob:captured", "EVENTPROC_STORAGE_CONNECTION_STRING"),
    ],
)
def test_another_form_is_refused_with_the_right_one(spec, part):
    with pytest.raises(ConfigurationError) as raised:
        with_capture(MemoryEventSource(MemoryHub(1)), spec, StorageAccess())

    assert part in str(raised.value)
