"""A worker between two of its processes."""

import asyncio
import logging

import pytest

from eventproc.cli.terminal.exits import FAILED
from eventproc.cli.workers.output import Output
from eventproc.cli.workers.worker import Worker
from eventproc.logs import get_logger
from eventproc.testing.virtual_time import run_virtual


class Roomless(Worker):
    """The system has no room for its process."""

    starts = 0

    async def _run_once(self):
        self.starts += 1
        raise OSError("no room")


@pytest.mark.parametrize("part", [0.5, 1.0])
def test_a_worker_that_is_stopped_between_two_processes_starts_none(part, caplog):
    """Also at the moment at which the wait ends: the new process would not know of the stop."""

    async def scenario():
        output = Output(logging.StreamHandler(), is_json=False)
        worker = Roomless(0, "a-0", [], output=output, log=get_logger("eventproc.workers"))
        worker._chance = lambda: 0.0
        keeping = asyncio.create_task(worker.keep())
        await asyncio.sleep(0)
        (end,) = [r for r in caplog.records if getattr(r, "event", "") == "worker_ended"]
        asyncio.get_running_loop().call_later(part * end.restart_in_s, worker.stop)
        return await keeping, worker.starts

    caplog.set_level("INFO", "eventproc.workers")

    assert run_virtual(scenario()) == (FAILED, 1)
