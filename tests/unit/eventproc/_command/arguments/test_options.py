"""A question, and what ends it."""

import asyncio
import os
from contextlib import suppress

import pytest

from eventproc._command.arguments.options import ChangeMode


@pytest.fixture(name="terminal")
def _terminal(monkeypatch):
    """Replace standard input; return what somebody types into."""
    end, begin = os.pipe()
    with os.fdopen(end) as stdin, os.fdopen(begin, "w") as terminal:
        monkeypatch.setattr("sys.stdin", stdin)
        yield terminal


@pytest.mark.parametrize(("answer", "expected"), [("y\n", True), ("no\n", False)])
async def test_a_line_of_standard_input_is_the_answer(terminal, answer, expected):
    asking = asyncio.create_task(ChangeMode().confirmed("Move it?"))
    terminal.write(answer)
    terminal.flush()

    assert await asking is expected


@pytest.mark.usefixtures("terminal")
async def test_a_question_ends_with_its_command():
    """After Ctrl+C nobody has to type a line before the process ends."""
    asking = asyncio.create_task(ChangeMode().confirmed("Move it?"))
    await asyncio.sleep(0.1)
    asking.cancel()
    with suppress(asyncio.CancelledError):
        await asking
    async with asyncio.timeout(20):
        await asyncio.get_running_loop().shutdown_default_executor()
