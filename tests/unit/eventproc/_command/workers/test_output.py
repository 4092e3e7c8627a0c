"""The lines of a worker: those of its log, and the message with which it ended."""

import json
import logging
import os

import pytest

from eventproc._base.logs import get_logger
from eventproc._command.workers.output import Output, WorkerLog

WRITTEN = b"""eventproc: serving JSON on 127.0.0.1:80
eventproc: the hub does not answer
Traceback: none
eventproc: --store is wrong
"""
"""What a process writes to standard error; the second message was not its last one."""


def log_of(data, *, is_json=False):
    """Return the log of worker 3 after its process wrote this to standard error, and ended."""
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    output = Output(logging.StreamHandler(), is_json=is_json)
    log = WorkerLog(output, 3, get_logger("eventproc.workers"))
    log.forward(os.fdopen(reading, "rb"))
    return log


@pytest.mark.parametrize("data", [WRITTEN, WRITTEN.rstrip(b"\n")])
def test_the_last_message_of_a_worker_is_the_one_of_its_end(data, capfd):
    """Earlier ones are lines like any other, so they are passed on."""
    log = log_of(data)

    assert log.last_words == "--store is wrong"
    assert sorted(capfd.readouterr().err.splitlines()) == [
        "[3] Traceback: none",
        "[3] eventproc: serving JSON on 127.0.0.1:80",
        "[3] eventproc: the hub does not answer",
    ]


def test_a_process_without_a_message_has_no_last_words(capfd):
    """So the report of its end has none of an earlier process."""
    log = log_of(b"a line about eventproc: nothing\n")

    assert log.last_words == ""
    assert capfd.readouterr().err == "[3] a line about eventproc: nothing\n"


def test_an_earlier_message_is_a_log_event_where_the_log_is_json(capfd, caplog):
    """Every line that the supervisor writes is an object."""
    log = log_of(b'{"event": "x"}\neventproc: one\neventproc: two\n', is_json=True)

    assert log.last_words == "two"
    assert json.loads(capfd.readouterr().err) == {"worker": 3, "event": "x"}
    (printed,) = caplog.records
    assert (printed.event, printed.text) == ("worker_printed", "eventproc: one")
