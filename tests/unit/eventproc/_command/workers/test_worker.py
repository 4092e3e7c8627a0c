"""A worker between two of its processes, and what the end of one means."""

import asyncio
import itertools
import logging
import signal
import sys
from types import SimpleNamespace

import pytest

from eventproc._base.logs import get_logger
from eventproc._base.retries import failures_in_a_row
from eventproc._command.terminal.exits import BAD_INPUT, FAILED
from eventproc._command.workers.output import Output
from eventproc._command.workers.worker import BACKOFF, STEADY_S, Worker, meaning_of, worst
from eventproc.testing._virtual_time import run_virtual

EARLY_S = 1.0


def waits_after(*runs):
    """Return the longest wait after each of these runs."""
    counts = itertools.accumulate(
        runs, lambda before, ran_s: failures_in_a_row(before, ran_s, BACKOFF), initial=0
    )
    return [BACKOFF.wait_s(count, 1.0) for count in list(counts)[1:]]


def test_early_ends_double_the_wait_up_to_a_minute():
    """The wait after the first end is one second."""
    assert waits_after(*[EARLY_S] * 8) == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_worker_that_ran_for_a_minute_begins_again_with_the_shortest_wait():
    """What happened before a good start is no reason to wait."""
    assert waits_after(EARLY_S, EARLY_S, EARLY_S, STEADY_S, EARLY_S) == [1, 2, 4, 1, 2]


@pytest.mark.parametrize(
    ("code", "was_asked", "meaning"),
    [
        (0, True, 0),
        (0, False, 0),
        (1, True, 1),
        (2, False, 2),
        (3, False, 3),
        (-signal.SIGKILL, True, 1),
        (-signal.SIGSEGV, False, 1),
        (-signal.SIGTERM, True, 0),
        (-signal.SIGTERM, False, 1),
        (77, False, 1),
    ],
)
def test_the_end_of_a_process_is_an_exit_code_of_the_command(code, was_asked, meaning):
    """A signal that ends a process is a failure, except for the request to stop itself."""
    assert meaning_of(code, was_asked=was_asked) == meaning


@pytest.mark.parametrize(
    ("codes", "expected"), [((0, 0), 0), ((0, 3), 3), ((3, 1), 1), ((1, 2, 0), 2), ((), 0)]
)
def test_the_worst_exit_code_counts(codes, expected):
    """Wrong input before a failure, a failure before no answer."""
    assert worst(codes) == expected


class Roomless(Worker):
    """The system has no room for its process."""

    starts = 0

    async def _run_once(self):
        self.starts += 1
        raise OSError("no room")


class Refusing(Worker):
    """Its process finds wrong input."""

    starts = 0

    async def _run_once(self):
        self.starts += 1
        self.last_words = "--store is wrong"
        return BAD_INPUT


def worker_of(kind):
    """Return a worker of this kind."""
    output = Output(logging.StreamHandler(), is_json=False)
    return kind(0, "a-0", [], output=output, log=get_logger("eventproc.workers"))


def test_wrong_input_ends_a_worker_for_good(caplog):
    """No restart mends it. The supervisor prints the message, so it is in no log event."""
    caplog.set_level("INFO", "eventproc.workers")

    async def scenario():
        worker = worker_of(Refusing)
        return await worker.keep(), worker.starts

    assert run_virtual(scenario()) == (BAD_INPUT, 1)
    assert [getattr(r, "reason", None) for r in caplog.records] == [None]


def test_a_worker_that_ends_again_and_again_is_an_error_from_the_third_time_on(caplog):
    """Each end is logged with its reason, and every further start waits longer."""
    caplog.set_level("INFO", "eventproc.workers")

    async def scenario():
        worker = worker_of(Roomless)
        worker._wait_s = lambda failures: 2.0**failures
        keeping = asyncio.create_task(worker.keep())
        await asyncio.sleep(10)
        worker.stop()
        await keeping

    run_virtual(scenario())

    events = [r.event for r in caplog.records]
    ends = [r for r in caplog.records if r.event == "worker_ended"]
    assert events.index("worker_kept_failing") == 3
    assert {r.reason for r in ends} == {"no room"}
    waits = [r.restart_in_s for r in ends]
    assert waits == sorted(set(waits))


async def test_a_process_that_ends_at_once_counts_as_a_failure_in_a_row(caplog):
    """A real process, which had no time to work: the third end is an error."""
    caplog.set_level("INFO", "eventproc.workers")
    worker, counts = worker_of(Worker), []
    worker._command = [sys.executable, "-c", ""]

    def wait_s(count):
        counts.append(count)
        if len(counts) == 4:
            worker.stop()
        return 0.0

    worker._wait_s = wait_s
    await worker.keep()

    assert counts == [1, 2, 3, 4]
    assert [r.event for r in caplog.records].index("worker_kept_failing") == 6


@pytest.mark.parametrize(("returncode", "pid"), [(None, 7), (0, None), (-9, None)])
def test_a_process_that_has_ended_has_no_process_id(returncode, pid):
    """The number may belong to another process by then."""
    worker = worker_of(Worker)
    before = worker.pid
    worker._process = SimpleNamespace(pid=7, returncode=returncode)

    assert (before, worker.pid) == (None, pid)


@pytest.mark.parametrize("part", [0.5, 1.0])
def test_a_worker_that_is_stopped_between_two_processes_starts_none(part, caplog):
    """Also at the moment at which the wait ends: the new process would not know of the stop."""

    async def scenario():
        worker = worker_of(Roomless)
        worker._wait_s = lambda failures: 2.0**failures
        keeping = asyncio.create_task(worker.keep())
        await asyncio.sleep(0)
        (end,) = [r for r in caplog.records if getattr(r, "event", "") == "worker_ended"]
        asyncio.get_running_loop().call_later(part * end.restart_in_s, worker.stop)
        return await keeping, worker.starts

    caplog.set_level("INFO", "eventproc.workers")

    assert run_virtual(scenario()) == (FAILED, 1)
