"""The supervisor of ``--workers N``: starts N ``eventproc`` processes, stops them gracefully.

All are asked to stop at the same time: members that announce together that they leave give each
other no partitions, and so a stop of N workers takes no longer than that of one.
"""

import asyncio
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Final

from eventproc._base.http.address import ListenAddress, parse_address
from eventproc._base.logs import Logger, get_logger
from eventproc._command.terminal.exits import BAD_INPUT, print_error
from eventproc._command.terminal.log_lines import LogFormat, LogLevel, chosen_format, log_to_stderr
from eventproc._command.workers.output import Output
from eventproc._command.workers.worker import Worker, worst
from eventproc._core.placement.placement import ordinal_in
from eventproc._delivery.checks import check_owner_id
from eventproc._group.config import GroupConfig
from eventproc._runtime.signals import GRACE, REPEATED_WITHIN_S, STOP_SIGNALS
from eventproc.errors import ConfigurationError

END_OF_OPTIONS: Final = "--"
"""After it everything on a command line is an argument."""

OWN_GRACE: Final = timedelta(seconds=2)
"""On top of ``GRACE``: a worker that ends itself in time writes a log event first."""

ENDED_BY_SIGNAL: Final = 128
"""Added to the number of a signal for the exit code, as in shells."""


def supervise(
    count: int,
    *,
    owner_id: str,
    config: GroupConfig,
    log_format: LogFormat,
    log_level: LogLevel,
    http: str = "",
) -> int:
    """Run *count* workers with the arguments of this process until a signal; return the exit code.

    Raises:
        ConfigurationError: the owner id cannot be kept, or *http* cannot be listened on.
    """
    ids = owner_ids(count, owner_id)
    check_owner_id(ids[0])
    first = first_ordinal(count, owner_id, config)
    address = parse_address(http, "--http") if http else None
    chosen = chosen_format(log_format)
    output = Output(log_to_stderr(log_format, log_level), is_json=chosen is LogFormat.JSON)
    log = get_logger("eventproc.workers")
    with sockets(count) if address else nullcontext([None] * count) as own_addresses:
        workers = [
            Worker(
                number,
                own_id,
                worker_arguments(
                    sys.argv[1:],
                    owner_id=own_id,
                    ordinal=None if first is None else first + number,
                    log_format=chosen,
                    http=own_address,
                ),
                address=own_address,
                output=output,
                log=log,
            )
            for number, (own_id, own_address) in enumerate(zip(ids, own_addresses, strict=True))
        ]
        supervisor = Supervisor(workers, shutdown_timeout=config.shutdown_timeout, log=log)
        return asyncio.run(_run(supervisor, workers, address, log))


async def _run(
    supervisor: "Supervisor", workers: Sequence[Worker], address: ListenAddress | None, log: Logger
) -> int:
    """Run the supervisor; with an address, serve there what the workers answer at theirs."""
    if address is None:
        return await supervisor.run()
    from eventproc._command.workers.answers import serve_joined  # noqa: PLC0415 - an extra

    async with serve_joined(address, workers, log):
        return await supervisor.run()


class Supervisor:
    """Keeps workers running until a signal comes, or until one finds that it cannot work."""

    def __init__(
        self, workers: Sequence[Worker], *, shutdown_timeout: timedelta, log: Logger
    ) -> None:
        """Stop workers that have this timeout; one that takes longer than it may is killed."""
        self._workers = workers
        self._stop_within_s = (shutdown_timeout + GRACE + OWN_GRACE).total_seconds()
        self._log = log

    async def run(self) -> int:
        """Run until everything has ended; return the exit code."""
        asked = asyncio.Event()
        self._log.info("supervisor_started", worker_count=len(self._workers))
        with self._signals(asked):
            keeping = {asyncio.create_task(worker.keep()): worker for worker in self._workers}
            waiting = asyncio.create_task(asked.wait())
            try:
                # A worker is only given up for wrong input, which no restart mends.
                await asyncio.wait([waiting, *keeping], return_when=asyncio.FIRST_COMPLETED)
                message = self._message(keeping)
                for worker in self._workers:
                    worker.stop()
                _, late = await asyncio.wait(keeping, timeout=self._stop_within_s)
                for task in late:
                    self._log.error("worker_killed", worker=keeping[task].number)
                    keeping[task].kill()
                codes = [await task for task in keeping]
            finally:
                waiting.cancel()
                for worker in self._workers:
                    worker.kill()
        code = worst(codes)
        self._log.info("supervisor_stopped", exit_code=code)
        if message:
            print_error(message)
        return code

    def _message(self, keeping: "dict[asyncio.Task[int], Worker]") -> str:
        """Return the message of the first worker (by number) that ended with ``BAD_INPUT``."""
        for task, worker in keeping.items():
            if task.done() and task.result() == BAD_INPUT:
                return worker.last_words or f"worker {worker.number} cannot work; see its lines"
        return ""

    @contextmanager
    def _signals(self, asked: asyncio.Event) -> Iterator[None]:
        """Set *asked* at the first signal; at the second one, end all processes at once."""
        loop = asyncio.get_running_loop()
        at_s: list[float] = []

        def handle(number: int, _: object) -> None:
            at_s.append(time.monotonic())
            if len(at_s) == 1:
                loop.call_soon_threadsafe(first, signal.Signals(number).name)
                return
            if at_s[-1] - at_s[0] < REPEATED_WITHIN_S:
                return
            # Not on the loop, which may wait for whoever reads the log.
            for worker in self._workers:
                worker.kill()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            os._exit(ENDED_BY_SIGNAL + number)  # The first process of a container survives that.

        def first(name: str) -> None:
            self._log.info("signal_received", signal=name)
            asked.set()

        before = {number: signal.signal(number, handle) for number in STOP_SIGNALS}
        try:
            yield
        finally:
            for number, was in before.items():
                signal.signal(number, was)


# --- what workers are given -----------------------------------------------------------------------


def owner_ids(count: int, owner_id: str) -> tuple[str, ...]:
    """Return the owner ids of all workers, the same ones at each start.

    They are made of the supervisor's owner id, or of the host's name if none was given.
    """
    base = owner_id or socket.gethostname()
    return tuple(f"{base}-{number}" for number in range(count))


def first_ordinal(count: int, owner_id: str, config: GroupConfig) -> int | None:
    """Return the ordinal of the first worker, if the supervisor has one; others follow.

    So supervisors with the ordinals 0, 1, 2 and *count* workers each have no ordinal twice.
    ``None`` also with a placement that does not use ordinals: a worker would refuse its own.
    """
    if not config.placement.uses_ordinals:
        return None
    own = ordinal_in(owner_id) if config.ordinal is None else config.ordinal
    return None if own is None else own * count


def worker_arguments(
    given: Sequence[str],
    *,
    owner_id: str,
    ordinal: int | None,
    log_format: LogFormat,
    http: ListenAddress | None,
) -> list[str]:
    """Return the arguments of a worker; of an option that is given twice, the last one counts."""
    own = ["--workers", "0", "--owner-id", owner_id, "--log-format", log_format, "--stop-at-eof"]
    if ordinal is not None:
        own += ["--ordinal", str(ordinal)]
    if http is not None:
        own += ["--http", str(http)]
    arguments = list(given)
    end = arguments.index(END_OF_OPTIONS) if END_OF_OPTIONS in arguments else len(arguments)
    return [*arguments[:end], *own, *arguments[end:]]


@contextmanager
def sockets(count: int) -> Iterator[Sequence[ListenAddress]]:
    """Yield an address for each worker, in a folder that only this user can enter.

    Raises:
        ConfigurationError: there is no temporary folder, or it cannot be written.
    """
    try:
        folder = tempfile.TemporaryDirectory(prefix="eventproc-", ignore_cleanup_errors=True)
    except OSError as error:
        raise ConfigurationError(
            f"--http with --workers needs a temporary folder for the workers' sockets: {error}. "
            "Mount one that can be written, or name one in TMPDIR"
        ) from error
    with folder as path:
        yield [ListenAddress(path=str(Path(path, str(number)))) for number in range(count)]
