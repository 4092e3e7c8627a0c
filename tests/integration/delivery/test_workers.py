"""The workers of ``eventproc run --workers``, killed in the middle of their work."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import psutil
import pytest

from tests.integration.delivery.environment import SqliteStore
from tests.integration.delivery.fleet import JOURNAL, ROOT, Fleet
from tests.integration.delivery.hub import PARTITIONS, EmulatorHub
from tests.integration.delivery.storm_checks import Handled, lost_events, out_of_order

EVENTS = 400
KILLS = 4
CHECKPOINT_EVENTS = 20
TIMEOUT_S = 400


@pytest.fixture(name="hub")
def _hub(tmp_path):
    hub = EmulatorHub()
    hub.open()
    yield hub
    hub.close()


@pytest.fixture(name="supervisor")
def _supervisor(tmp_path, hub):
    """Start two workers that write a journal."""
    given = {"STORM_JOURNAL": str(tmp_path / JOURNAL), "STORM_PACE_S": "0.01"}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "eventproc", "run", "--workers", "2"),
                *("tests.integration.delivery.storm_handler:Handler", "--owner-id", "host"),
                *("--store", SqliteStore(tmp_path).spec, "--interval", "1s", "--expiration", "6s"),
                *("--checkpoint-events", str(CHECKPOINT_EVENTS), "--stop-at-eof"),
            ],
            stdin=subprocess.PIPE,
            stderr=log,
            cwd=ROOT,
            env=os.environ | given | {"EVENTPROC_OWNER_ID": "host"} | dict(hub.env),
        )
    yield process
    process.communicate(timeout=TIMEOUT_S)  # Its input ends, and then it stops.


@pytest.mark.long
def test_workers_that_are_killed_lose_no_event(tmp_path, hub, supervisor):
    """Every event is handled, each partition in order, and only events without a checkpoint are
    repeated; the stop is graceful nevertheless."""
    fleet = Fleet("", tmp_path)
    rng = random.Random(7)
    hub.publish(range(EVENTS))
    killed: set[int] = set()
    for number in range(1, KILLS + 1):
        fleet.until_lines(number * EVENTS * PARTITIONS // (KILLS + 2))
        worker = rng.choice(
            [w for w in psutil.Process(supervisor.pid).children() if w.pid not in killed]
        )
        killed.add(worker.pid)
        worker.kill()
    until_s = time.monotonic() + TIMEOUT_S
    while len(set(fleet.places())) < EVENTS * PARTITIONS:
        assert time.monotonic() < until_s, (tmp_path / "log").read_text()[-2000:]
        time.sleep(0.1)
    supervisor.send_signal(signal.SIGTERM)
    supervisor.wait(timeout=TIMEOUT_S)
    handled = [
        Handled(
            owner_id=str(facts[0]), partition_id=str(facts[2]), number=int(str(facts[3])), at_s=0
        )
        for facts in fleet.journal()
    ]
    repeated = Counter(fleet.places()).total() - EVENTS * PARTITIONS

    assert supervisor.returncode == 0
    assert list(lost_events(handled, dict.fromkeys(map(str, range(PARTITIONS)), EVENTS))) == []
    assert list(out_of_order(handled)) == []
    assert repeated <= KILLS * PARTITIONS * (CHECKPOINT_EVENTS + 1)
