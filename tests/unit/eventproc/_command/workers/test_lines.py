"""Lines of workers, however the pipe divides them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._command.workers.output import LINE_MAX, lines_of, numbered_json, numbered_text

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
