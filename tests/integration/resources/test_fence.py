"""Real processes that hold names: a server with a fence accepts nothing from a former holder."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.integration.resources.bounds import Bounds
from tests.integration.resources.findings import find
from tests.integration.resources.report import violations
from tests.integration.resources.storm import ROOT, Storm

EVENTS = 13
"""Of each of the two groups: 26 together."""

START = """
import sys
from pathlib import Path
from random import Random
from tests.integration.resources.storm import Storm

place = Path(sys.argv[1])
storm = Storm(place, str(place / "store.db"), Random(0))
with storm.fence:
    print(*(storm.join().popen.pid for _ in range(2)), flush=True)
    sys.stdin.read()
"""


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sqlite", "azurite"])
def test_no_message_is_accepted_from_a_former_holder(kind, request, tmp_path):
    """Whoever joins, leaves, is killed or frozen; and no name is closed for too long."""
    store = str(tmp_path / "store.db")
    if kind == "azurite":
        connection, container = map(request.getfixturevalue, ("storage", "container"))
        store = f"{container} {connection}"
    storm = Storm(tmp_path, store, Random(f"7 {kind}"))
    storm.play(EVENTS)
    bounds = Bounds(kind == "azurite")
    found = find(storm.fence.messages, storm.processes, bounds, storm.settled_s)

    assert violations(storm, found, bounds) == []
    assert found.accepted_count > 0
    assert found.refused, "a holder was frozen and woke up, so the fence had something to refuse"
    assert len(found.changes) >= EVENTS


def _is_alive(pid: int) -> bool:
    """Whether a process runs or is frozen; one that has ended may still wait for its parent."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def _await(condition: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until_s, "it takes too long"
        time.sleep(0.02)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_no_process_is_left_if_the_one_that_tells_the_story_is_killed(tmp_path):
    """Not even one that is frozen at that moment."""
    parent = subprocess.Popen(
        [sys.executable, "-c", START, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    with parent:
        assert parent.stdout is not None
        frozen, running = map(int, parent.stdout.readline().split())
        os.kill(frozen, signal.SIGSTOP)
        assert _is_alive(frozen)
        assert _is_alive(running)
        parent.kill()

    _await(lambda: not _is_alive(frozen) and not _is_alive(running))


@pytest.mark.long
def test_ctrl_c_ends_the_command_in_order_with_what_was_found():
    """As soon as messages were sent, while the first holders are frozen."""
    command = subprocess.Popen(
        [sys.executable, "-u", "-m", "tests.integration.resources", "--events", "400"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    with command:
        assert command.stdout is not None
        assert command.stderr is not None
        for line in command.stdout:
            if re.search(r"events, [1-9]\d* messages", line):
                break
        os.killpg(command.pid, signal.SIGINT)
        shown, errors = command.stdout.read(), command.stderr.read()

    assert (command.returncode, errors) == (130, "")
    rows = re.findall(r"^(?:azurite|sqlite) +\d+ +\d+", shown, re.MULTILINE)
    assert len(rows) == 2
