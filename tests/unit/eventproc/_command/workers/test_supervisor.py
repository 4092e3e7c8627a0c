"""The supervisor, and the names and the command line of its workers."""

import asyncio
import logging
import socket
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest

from eventproc import EventProcessorConfig, Ordinal, Published
from eventproc._base.http.address import ListenAddress
from eventproc._base.logs import get_logger
from eventproc._command.terminal.exits import BAD_INPUT, FAILED, OK
from eventproc._command.terminal.log_lines import LogFormat
from eventproc._command.workers.output import Output
from eventproc._command.workers.supervisor import (
    Supervisor,
    first_ordinal,
    owner_ids,
    sockets,
    worker_arguments,
)
from eventproc._command.workers.worker import Worker
from eventproc._runtime.signals import GRACE
from eventproc.errors import ConfigurationError
from eventproc.testing._virtual_time import run_virtual


def arguments_of(*given, ordinal=None, http=None):
    """Return the arguments of the worker ``web-1``."""
    return worker_arguments(
        given, owner_id="web-1", ordinal=ordinal, log_format=LogFormat.JSON, http=http
    )


def test_workers_are_named_after_the_supervisor():
    """Without a name of its own, after the host; the same names at each start."""
    assert owner_ids(3, "web") == ("web-0", "web-1", "web-2")
    assert owner_ids(1, "") == (f"{socket.gethostname()}-0",)


@pytest.mark.parametrize(
    ("owner_id", "ordinal", "expected"),
    [("", None, None), ("web", None, None), ("web-2", None, 8), ("web-2", 1, 4), ("", 0, 0)],
)
def test_supervisors_share_no_ordinals(owner_id, ordinal, expected):
    """The first of four workers; the number at the end of the name is the supervisor's own."""
    config = EventProcessorConfig(placement=Ordinal(), ordinal=ordinal)

    assert first_ordinal(4, owner_id, config) == expected


def test_workers_have_no_ordinal_that_their_placement_would_refuse():
    """Although the supervisor's name ends in a number, as that of a StatefulSet's pod does."""
    assert first_ordinal(4, "web-2", EventProcessorConfig()) is None
    assert first_ordinal(4, "web-2", EventProcessorConfig(placement=Published(Ordinal()))) == 8


def test_a_worker_has_the_supervisors_options_and_then_its_own():
    """The last one counts, so what the supervisor was given is overruled."""
    given = ("run", "shop:Count", "--workers", "2", "--log-format=text", "--owner-id", "web")

    assert arguments_of(*given) == [
        *given,
        *("--workers", "0", "--owner-id", "web-1", "--log-format", "json", "--stop-at-eof"),
    ]


def test_a_worker_is_given_its_ordinal_if_the_supervisor_has_one():
    """Otherwise it is the number at the end of the owner id."""
    assert arguments_of("run", ordinal=5)[-2:] == ["--ordinal", "5"]


def test_a_worker_serves_on_the_socket_that_the_supervisor_asks():
    """What the supervisor was given is its own address."""
    found = arguments_of("run", "--http", "8080", http=ListenAddress(path="/run/1"))

    assert found[-2:] == ["--http", "unix:/run/1"]


def test_options_of_a_worker_stand_before_the_end_of_options():
    """After it everything is an argument."""
    assert arguments_of("run", "--", "shop:Count")[-2:] == ["--", "shop:Count"]
    assert arguments_of("run", "--", "shop:Count")[0] == "run"


LOG = get_logger("eventproc.workers")
TIMEOUT = timedelta(seconds=30)
"""The workers' ``shutdown_timeout``."""


class Stopping(Worker):
    """Ends some time after it was asked to, or as soon as it is killed; it has no process."""

    def __init__(self, takes):
        super().__init__(
            0, "a-0", [], output=Output(logging.StreamHandler(), is_json=False), log=LOG
        )
        self._takes_s = takes.total_seconds()
        self._is_stopped, self._is_killed = asyncio.Event(), asyncio.Event()

    def stop(self):
        self._is_stopped.set()

    def kill(self):
        self._is_killed.set()

    async def keep(self):
        await self._is_stopped.wait()
        try:
            async with asyncio.timeout(self._takes_s):
                await self._is_killed.wait()
        except TimeoutError:
            return OK
        return FAILED


class Refusing(Stopping):
    """Finds at once that it cannot work, which stops the others."""

    async def keep(self):
        return BAD_INPUT


@pytest.mark.parametrize(
    ("takes", "is_killed"),
    [
        (TIMEOUT, False),
        (TIMEOUT + GRACE + timedelta(seconds=1), False),
        (TIMEOUT + GRACE + timedelta(seconds=60), True),
    ],
)
def test_a_worker_has_time_to_end_itself_before_it_is_killed(takes, is_killed, caplog):
    """It does so after ``shutdown_timeout`` and ``GRACE``, and logs it first."""

    async def scenario():
        workers = [Stopping(takes), Refusing(takes)]
        code = await Supervisor(workers, shutdown_timeout=TIMEOUT, log=LOG).run()
        return code, asyncio.get_running_loop().time()

    code, ended_s = run_virtual(scenario())

    assert code == BAD_INPUT
    assert ("worker_killed" in [getattr(r, "event", "") for r in caplog.records]) is is_killed
    assert ended_s <= (TIMEOUT + GRACE + timedelta(seconds=10)).total_seconds()


@pytest.mark.parametrize(
    ("last_words", "printed"),
    [
        ("--store is wrong", "eventproc: --store is wrong\n"),
        ("", "eventproc: worker 0 cannot work; see its lines\n"),
    ],
)
def test_the_last_message_of_a_worker_that_cannot_work_is_that_of_the_command(
    last_words, printed, capsys
):
    """As without workers; if there is none, the line says where to look."""

    async def scenario():
        worker = Refusing(TIMEOUT)
        worker.last_words = last_words
        return await Supervisor([worker], shutdown_timeout=TIMEOUT, log=LOG).run()

    assert run_virtual(scenario()) == BAD_INPUT
    assert capsys.readouterr().err == printed


def test_each_worker_has_a_socket_in_a_folder_of_the_user_that_is_removed_at_the_end():
    """Other users of the machine cannot ask the workers."""
    with sockets(2) as addresses:
        paths = [Path(address.path) for address in addresses]
        mode = paths[0].parent.stat().st_mode & 0o777

    assert len(set(paths)) == 2
    assert mode == 0o700
    assert not paths[0].parent.exists()


def test_without_a_temporary_folder_the_remedy_is_named(monkeypatch):
    """As in a container whose root file system is read-only."""
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")

    with pytest.raises(ConfigurationError, match="TMPDIR"), sockets(1):
        pass
