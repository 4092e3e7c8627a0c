"""``--workers N`` with real processes, seen from outside."""

import json
import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from textwrap import dedent

import psutil
import pytest
from azure.eventhub import EventData, EventHubProducerClient

HANDLER = """
    import os
    import sys
    import time
    from eventproc import PartitionHandler

    class Count(PartitionHandler):
        async def initialize(self, context):
            os.write(2, b"not through logging\\n")

        async def process_event(self, context, event):
            print(os.environ["EVENTPROC_WORKER"], context.partition_id, event.sequence_number)
            sys.stdout.flush()

    class Blocking(Count):
        async def process_event(self, context, event):
            print("blocked", os.environ["EVENTPROC_WORKER"], flush=True)
            time.sleep(3600)
"""
HERE = ("--eventhub", "orders", "--store", "sqlite:group.db")
FAST = ("--interval", "1s", "--expiration", "6s", "--owner-id", "host")
SHORT = ("--shutdown-timeout", "5s")
TIMEOUT_S = 60


@pytest.fixture(name="hub")
def _hub(orders, tmp_path):
    """Publish an event to each of four partitions, and write a handler to the folder."""
    (tmp_path / "shop.py").write_text(dedent(HANDLER))
    with EventHubProducerClient.from_connection_string(
        orders.connection_string_for("orders")
    ) as producer:
        for partition_id in "0123":
            producer.send_batch([EventData("x")], partition_id=partition_id)
    return {"EVENTPROC_CONNECTION_STRING": orders.connection_string}


@pytest.fixture(name="supervise")
def _supervise(command, hub):
    """Return a function that starts a supervisor of two workers, with this handler."""
    children = []

    def start(handler="shop:Count", *options):
        process = command.start("run", handler, *HERE, *FAST, "--workers", "2", *options, **hub)
        children.append(process)
        return process

    yield start
    for process in children:  # Their workers end with them; those that are suspended would not.
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(process.pid).children():
                child.kill()


def workers_of(process):
    """Return the processes that a supervisor has started, once there are two."""
    until_s = time.monotonic() + TIMEOUT_S
    while len(found := psutil.Process(process.pid).children()) < 2:
        assert time.monotonic() < until_s
        time.sleep(0.02)
    return found


def suspend(worker):
    """Suspend a process, and wait until all of its threads have stopped."""
    worker.suspend()
    while worker.status() != psutil.STATUS_STOPPED:
        time.sleep(0.01)


def handled(process, count=4):
    """Wait until this many lines were printed; return their words."""
    return [process.stdout.readline().split() for _ in range(count)]


def stopped(process):
    """Stop a supervisor; return its log events."""
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=TIMEOUT_S)
    return [json.loads(line) for line in err.splitlines()]


def test_workers_share_the_partitions_and_one_log(command, supervise, hub):
    """Each is a member under a name of its own, each line is a JSON object with its number, and a
    stop releases everything."""
    process = supervise()
    seen = handled(process)
    code, names, until_s = 0, list[str](), time.monotonic() + TIMEOUT_S
    while len(names) < 2 and time.monotonic() < until_s:  # One may handle all before the other.
        code, out, _ = command.run("status", *HERE, "--format", "json", **hub)
        names = [member["owner_id"] for member in json.loads(out)["members"]]
    events = stopped(process)
    _, after, _ = command.run("status", *HERE, "--format", "json", **hub)
    of_workers = [entry for entry in events if entry["logger"] != "eventproc.workers"]

    assert {partition for _, partition, _ in seen} == set("0123")
    assert (code, names) == (0, ["host-0", "host-1"])
    assert process.returncode == 0
    assert {(entry["worker"], entry["owner_id"]) for entry in of_workers} == {
        (0, "host-0"),
        (1, "host-1"),
    }
    printed = [entry for entry in events if entry["event"] == "worker_printed"]
    assert {entry["text"] for entry in printed} == {"not through logging"}
    assert [e["event"] for e in events].count("processor_stopped") == 2
    assert (events[0]["event"], events[-1]["event"]) == ("supervisor_started", "supervisor_stopped")
    assert [p["owner_id"] for p in json.loads(after)["partitions"]] == [None] * 4
    assert json.loads(after)["members"] == []


@pytest.mark.long
def test_lines_of_text_have_the_workers_number_before_them(supervise):
    """Also those that did not pass through logging. The end of the input stops the supervisor."""
    process = supervise("shop:Count", "--log-format", "text", "--stop-at-eof")
    handled(process)
    _, err = process.communicate(timeout=TIMEOUT_S)
    lines = err.splitlines()
    own = [line for line in lines if " eventproc.workers: " in line]

    assert process.returncode == 0
    assert all(line.startswith(("[0] ", "[1] ")) for line in lines if line not in own)
    assert {"[0] not through logging", "[1] not through logging"} & set(lines)
    assert own[0].endswith("supervisor_started worker_count=2")


def test_a_worker_that_dies_is_started_again_under_its_name(supervise):
    """Killed, or stopped by a signal of its own."""
    process = supervise()
    handled(process)
    for number in (signal.SIGKILL, signal.SIGTERM):
        before = {child.pid for child in workers_of(process)}
        os.kill(max(before), number)
        until_s = time.monotonic() + TIMEOUT_S
        while {child.pid for child in workers_of(process)} <= before:
            assert time.monotonic() < until_s
            time.sleep(0.02)
    events = stopped(process)
    starts = [entry for entry in events if entry["event"] == "worker_started"]
    restarts = [entry for entry in events if entry.get("restart_in_s")]

    assert process.returncode == 0
    assert len(starts) == 4
    assert {entry["owner_id"] for entry in starts} == {"host-0", "host-1"}
    assert restarts[0]["level"] == "warning"
    assert all(entry["restart_in_s"] <= 2 for entry in restarts)


def test_a_supervisor_that_is_killed_leaves_no_worker(supervise):
    """They notice that their input has ended; one that is suspended is ended by the system."""
    process = supervise()
    handled(process)
    workers = workers_of(process)
    suspend(workers[0])
    process.kill()
    gone, alive = psutil.wait_procs(workers, timeout=TIMEOUT_S)

    assert (len(gone), alive) == (2, [])


@pytest.mark.long
def test_workers_end_with_a_supervisor_that_is_killed_while_they_import(supervise, tmp_path):
    """The import of a handler may take long, and nothing should run after it."""
    (tmp_path / "slow.py").write_text(
        "import time\nprint('importing', flush=True)\ntime.sleep(999)"
    )
    process = supervise("slow:Handler")
    handled(process, 2)
    workers = workers_of(process)
    process.kill()
    gone, alive = psutil.wait_procs(workers, timeout=TIMEOUT_S)

    assert (len(gone), alive) == (2, [])


@pytest.mark.long
def test_a_worker_that_hangs_at_the_stop_is_killed(supervise):
    """A suspended process cannot end itself; the exit code tells of it."""
    process = supervise("shop:Count", *SHORT)
    handled(process)
    workers = workers_of(process)
    suspend(workers[1])
    events = stopped(process)

    assert process.returncode == 1
    assert [e["worker"] for e in events if e["event"] == "worker_killed"] == [1]
    assert {e["exit_code"] for e in events if e["event"] == "worker_ended"} == {0, -9}
    assert not any(worker.is_running() for worker in workers)


@pytest.mark.long
def test_a_worker_whose_handler_blocks_ends_itself(supervise):
    """Its own limit comes first, so that it can log what it was doing."""
    process = supervise("shop:Blocking", *SHORT)
    handled(process, 2)
    events = stopped(process)
    killed = [entry for entry in events if entry["event"] == "process_killed"]

    assert process.returncode == 1
    assert len(killed) in {1, 2}
    assert "worker_killed" not in {entry["event"] for entry in events}


def test_a_second_signal_ends_everything_at_once(supervise):
    """Also a worker that is suspended, and those whose handlers block."""
    process = supervise("shop:Blocking", "--shutdown-timeout", "1h")
    handled(process, 1)
    workers = workers_of(process)
    suspend(workers[1])
    process.send_signal(signal.SIGTERM)
    while "signal_received" not in process.stderr.readline():
        pass
    while process.poll() is None:  # One that comes within 0.1 s is the same request.
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=0.3)
    _, alive = psutil.wait_procs(workers, timeout=TIMEOUT_S)

    assert (process.returncode, alive) == (-signal.SIGTERM, [])


def test_a_handler_that_cannot_be_imported_gives_one_message(supervise, tmp_path):
    """A restart cannot help, so all workers end; the message is as without workers."""
    (tmp_path / "broken.py").write_text("def (")
    process = supervise("broken:Handler")
    _, err = process.communicate(timeout=TIMEOUT_S)
    lines = err.splitlines()

    assert process.returncode == 2
    assert lines[-1].startswith("eventproc: module 'broken' cannot be imported: SyntaxError")
    assert err.count("broken") == lines[-1].count("broken")
    assert {json.loads(line)["event"] for line in lines[:-1]} == {
        *("supervisor_started", "worker_started", "worker_ended", "supervisor_stopped")
    }


@pytest.mark.long
def test_wrong_input_that_shows_later_ends_all_workers(supervise, tmp_path):
    """The file of the group is deleted: whichever worker notices it first, also one that has not
    opened it yet, both stop."""
    process = supervise()
    handled(process)
    (tmp_path / "group.db").unlink()
    _, err = process.communicate(timeout=TIMEOUT_S)
    messages = [line for line in err.splitlines() if not line.startswith("{")]

    assert process.returncode == 2
    assert len(messages) == 1
    assert "stop all processors" in messages[0].lower()
    assert "put the file back" in messages[0]


@pytest.mark.long
def test_a_worker_that_keeps_failing_is_started_after_longer_waits(command, supervise, hub):
    """No hub answers: exit code 3, which a restart may mend. The third time is an error."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # Not listening, so connections are refused.
        port = reserved.getsockname()[1]
        away = hub["EVENTPROC_CONNECTION_STRING"].replace(
            hub["EVENTPROC_CONNECTION_STRING"].partition("127.0.0.1:")[2].partition(";")[0],
            str(port),
        )
        process = command.start(
            *("run", "shop:Count", *HERE, *FAST, "--workers", "1"), EVENTPROC_CONNECTION_STRING=away
        )
        seen: list[dict[str, object]] = []
        while not seen or seen[-1]["event"] != "worker_kept_failing":
            seen.append(json.loads(process.stderr.readline()))
        events = seen + stopped(process)
    ends = [entry for entry in events if entry.get("restart_in_s")]

    assert [entry["exit_code"] for entry in ends] == [3, 3, 3]
    assert all(
        longest / 2 <= entry["restart_in_s"] <= longest
        for entry, longest in zip(ends, (1, 2, 4), strict=True)
    )
    assert {entry["reason"] for entry in ends} != {None}
    assert [(e["level"], e["count"]) for e in events if e["event"] == "worker_kept_failing"] == [
        ("error", 3)
    ]
    assert process.returncode == 3
