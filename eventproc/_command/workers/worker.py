"""One worker: a process of the command, which is started again whenever it ends by itself."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Final

from eventproc._base.http.address import ListenAddress
from eventproc._base.logs import ConditionLogger, Logger
from eventproc._base.retries import Backoff, failures_in_a_row, waits
from eventproc._base.threads import in_own_thread
from eventproc._command.terminal.ends import start_child
from eventproc._command.terminal.exits import BAD_INPUT, FAILED, OK, UNREACHABLE
from eventproc._command.workers.output import Output, WorkerLog

BACKOFF: Final = Backoff(initial=timedelta(seconds=1), maximum=timedelta(minutes=1))
"""Waits before the next start."""

STEADY_S: Final = BACKOFF.maximum.total_seconds()
"""A worker that ran for this long had started well: its next end counts as the first one."""

REPORTED_AFTER: Final = 3
"""After this many ends in a row, each within ``STEADY_S`` of the start, an operator has to look."""

_SEVERITY: Final = (OK, UNREACHABLE, FAILED, BAD_INPUT)
"""From the best to the worst."""


LAST_LINES_S: Final = 1.0
"""How long to wait for the last lines of a process that has ended: its children may still write."""

NUMBER_VARIABLE: Final = "EVENTPROC_WORKER"
"""Environment variable of a worker's process: its number."""


class Worker:
    """A member of the group whose process is kept running."""

    def __init__(
        self,
        number: int,
        owner_id: str,
        arguments: Sequence[str],
        *,
        address: ListenAddress | None = None,
        output: Output,
        log: Logger,
    ) -> None:
        self.number = number
        self.owner_id = owner_id
        self.address = address
        """Where its process answers what ``--http`` serves; ``None``: nowhere."""

        self.last_words = ""
        """With which message the process ended last; empty if it had none."""
        self._command = [sys.executable, "-m", "eventproc", *arguments]
        self._output = output
        self._log = log.bind(worker=number, owner_id=owner_id)
        self._wait_s = waits(BACKOFF)
        self._process: subprocess.Popen[bytes] | None = None
        self._begun_s = 0.0
        self._stopping = asyncio.Event()
        self._failure_count = 0
        self._failing = ConditionLogger(self._log, "worker_kept_failing", "worker_recovered")

    @property
    def pid(self) -> int | None:
        """Its process; ``None`` while there is none."""
        process = self._process
        return None if process is None or process.returncode is not None else process.pid

    @property
    def age_s(self) -> float:
        """How long ago its process was started."""
        return asyncio.get_running_loop().time() - self._begun_s

    def stop(self) -> None:
        """Ask the process to stop, and start no other one."""
        self._stopping.set()
        if self._process is not None:
            self._process.terminate()

    def kill(self) -> None:
        """End the process at once, and start no other one. May be called by a signal handler."""
        self._stopping.set()
        if self._process is not None:
            self._process.kill()

    async def keep(self) -> int:
        """Keep a process running until ``stop``, or until one ends with ``BAD_INPUT``.

        Returns what the end of the last process amounts to, as an exit code of the command.
        """
        while True:
            self._begun_s = asyncio.get_running_loop().time()
            try:
                code = await self._run_once()
            # The system has no room for another process, or for the threads that read its output.
            except (OSError, RuntimeError) as error:
                code, self.last_words = FAILED, str(error)
            ran_s = self.age_s
            result = meaning_of(code, was_asked=self._stopping.is_set())
            if self._stopping.is_set() or result == BAD_INPUT:
                self._note_end(code, ran_s)
                return result
            self._failure_count = failures_in_a_row(self._failure_count, ran_s, BACKOFF)
            wait_s = self._wait_s(self._failure_count)
            self._note_end(code, ran_s, restart_in_s=round(wait_s, 3))
            if self._failure_count >= REPORTED_AFTER:
                self._failing.note(is_error=True, count=self._failure_count)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._stopping.wait()
            # Also if the wait was over at the moment of ``stop``, which found no process to end.
            if self._stopping.is_set():
                return result

    def _note_end(self, code: int, ran_s: float, restart_in_s: float | None = None) -> None:
        """Log how a process ended; wrong input is the supervisor's last message, so not here."""
        is_expected = self._stopping.is_set() or code in {OK, BAD_INPUT}
        log = self._log.info if is_expected else self._log.warning
        log(
            "worker_ended",
            exit_code=code,
            reason=None if code == BAD_INPUT else self.last_words or None,
            ran_for_s=round(ran_s, 3),
            restart_in_s=restart_in_s,
        )

    async def _run_once(self) -> int:
        """Run one process to its end; return its exit code, or the negative signal."""
        # Whoever looks at a terminal wants to see each line at once.
        unbuffered = {"PYTHONUNBUFFERED": "1"} if sys.stdout.isatty() else {}
        process = self._process = start_child(
            self._command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={NUMBER_VARIABLE: str(self.number), **unbuffered},
        )
        self._log.info("worker_started", pid=process.pid)
        lines = WorkerLog(self._output, self.number, self._log)
        name = f"eventproc-worker-{self.number}"
        try:
            reading = [
                in_own_thread(
                    partial(self._output.forward_output, process.stdout), f"{name}-output"
                ),
                in_own_thread(partial(lines.forward, process.stderr), f"{name}-log"),
            ]
            ended = in_own_thread(process.wait, name)
        except RuntimeError:
            process.kill()
            process.wait()
            raise
        done, _ = await asyncio.wait([ended], timeout=STEADY_S)
        if not done:
            self._failure_count = 0
            self._failing.end()
        await ended
        process.stdin.close()
        await asyncio.wait(reading, timeout=LAST_LINES_S)
        self.last_words = lines.last_words
        return process.returncode


def meaning_of(code: int, *, was_asked: bool) -> int:
    """Return what a process's end amounts to, as an exit code of the command.

    A negative *code* is the signal that ended the process. A worker that was asked to stop while
    Python was still starting is ended by the request itself, and had nothing under way.
    """
    if was_asked and code == -signal.SIGTERM:
        return OK
    return code if code in _SEVERITY else FAILED


def worst(codes: Iterable[int]) -> int:
    """Return the worst exit code: wrong input, then a failure, then no answer, then success."""
    return max(codes, key=_SEVERITY.index, default=OK)
