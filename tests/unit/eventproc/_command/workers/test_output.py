"""What workers write: lines of any pipe, and the message with which a worker ended."""

import json
import logging
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._base.logs import get_logger
from eventproc._command.workers.output import (
    LINE_MAX,
    Output,
    WorkerLog,
    lines_of,
    numbered_json,
    numbered_text,
)

LINES = st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"|")), max_size=8)


@given(LINES, st.data())
def test_lines_are_whole_however_they_were_read(lines, data):
    """The pipe gives pieces of any size."""
    text = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    assert [line for found in lines_of(pieces) for line in found] == lines


def test_text_without_a_line_end_is_the_last_line():
    """As when a process is killed in the middle of a line."""
    assert list(lines_of([b"one\ntw", b"o"])) == [[b"one"], [b"two"]]


def test_a_line_without_end_is_divided():
    """Otherwise one worker could fill the supervisor's memory."""
    pieces = [b"x" * 1_000_000] * 4
    found = [line for lines in lines_of(iter(pieces)) for line in lines]

    assert b"".join(found) == b"".join(pieces)
    assert max(map(len, found)) <= LINE_MAX + len(pieces[0])
    assert len(found) == 2


def test_a_line_of_text_has_the_number_before_it():
    """Any bytes can be a line."""
    assert numbered_text(b"\xff", 3) == b"[3] \xff"


@given(
    st.dictionaries(
        st.text(max_size=5), st.integers() | st.text(max_size=5) | st.none(), min_size=1
    )
)
def test_a_json_object_gets_the_number_and_keeps_everything_else(entry):
    """It stays one object on one line."""
    found = numbered_json(json.dumps(entry).encode(), 12)

    assert found is not None
    assert b"\n" not in found
    assert json.loads(found) == {"worker": 12} | entry


@pytest.mark.parametrize(
    "line", [b"", b"{}", b"{", b"{x}", b"[1]", b"12", b"text", b"\xff", b'"a"']
)
def test_what_is_no_json_object_is_not_taken_for_one(line):
    """A traceback, the output of a C library, or half a line."""
    assert numbered_json(line, 1) is None


def test_a_field_of_the_users_stays():
    """Two fields of one name would hide one of them."""
    assert numbered_json(b'{"worker": "mine"}', 1) == b'{"worker": "mine"}'


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
