"""What workers write: passed on to the supervisor's own output, one whole line after the other."""

import os
import threading
from collections.abc import Iterable, Iterator
from typing import IO, Final

from eventproc._base.bounded_json import read_json
from eventproc._base.logs import Logger
from eventproc._command.terminal.exits import ERROR_PREFIX
from eventproc._command.terminal.log_lines import LogOutput

LINE_MAX: Final = 1 << 20
"""Bytes; a longer line is divided, so that a worker cannot fill the supervisor's memory."""


STANDARD_OUTPUT: Final = 1
STANDARD_ERROR: Final = 2
CHUNK_BYTES: Final = 1 << 16

_PREFIX: Final = ERROR_PREFIX.encode()


class Output:
    """Standard output and standard error of the supervisor, shared by the threads of workers."""

    def __init__(self, log_output: LogOutput, *, is_json: bool) -> None:
        """Take turns with the supervisor's own log lines, which *log_output* writes."""
        self.is_json = is_json
        self._log_output = log_output
        self._lock = threading.Lock()

    def forward_output(self, pipe: IO[bytes]) -> None:
        """Pass on what a worker prints, until it ends; the lines as they are."""
        with pipe:
            for lines in lines_of(_chunks(pipe)):
                try:
                    with self._lock:
                        _write_all(STANDARD_OUTPUT, lines)
                except OSError:
                    return  # Whoever reads it has ended: now the worker's prints fail, too.

    def write_log(self, lines: Iterable[bytes]) -> None:
        """Write lines to standard error, not mixed with others."""
        self._log_output.acquire()
        try:
            _write_all(STANDARD_ERROR, lines)
        except OSError:
            pass  # As for logging: that the log cannot be written does not stop the work.
        finally:
            self._log_output.release()


class WorkerLog:
    """The lines that one process of a worker writes to standard error."""

    def __init__(self, output: Output, number: int, log: Logger) -> None:
        self._output = output
        self._number = number
        self._log = log
        self.last_words = ""
        """The message with which the command ended, as after ``eventproc:``; empty if none."""

    def forward(self, pipe: IO[bytes]) -> None:
        """Pass the lines on with the worker's number, until the process ends."""
        with pipe:
            for lines in lines_of(_chunks(pipe)):
                for line in lines:
                    if line.startswith(_PREFIX):
                        self._keep(line)
                    else:
                        self._pass_on(line)

    def _keep(self, line: bytes) -> None:
        """Keep a message for the report of the process's end; an earlier one was not the last."""
        if self.last_words:
            self._pass_on(_PREFIX + self.last_words.encode())
        self.last_words = line.removeprefix(_PREFIX).decode(errors="replace")

    def _pass_on(self, line: bytes) -> None:
        if not self._output.is_json:
            self._output.write_log([numbered_text(line, self._number)])
            return
        numbered = numbered_json(line, self._number)
        if numbered is None:
            self._log.warning("worker_printed", text=line.decode(errors="replace"))
        else:
            self._output.write_log([numbered])


def lines_of(chunks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the lines that each chunk completes, without newlines; last an incomplete line."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > LINE_MAX:
            lines.append(rest)
            rest = b""
        if lines:
            yield lines
    if rest:
        yield [rest]


def numbered_text(line: bytes, number: int) -> bytes:
    """Return the line with the worker's number before it."""
    return b"[%d] %b" % (number, line)


def numbered_json(line: bytes, number: int) -> bytes | None:
    """Return the JSON object on this line with a field ``worker``; ``None`` if there is none.

    A line that has such a field already stays as it is.
    """
    try:
        entry = read_json(line) if line.startswith(b"{") else None
    except ValueError:
        return None
    if not isinstance(entry, dict) or not entry:
        return None
    return line if "worker" in entry else b'{"worker": %d, %b' % (number, line[1:].lstrip())


def _chunks(pipe: IO[bytes]) -> Iterator[bytes]:
    # Not through Python's buffer: its lock would be held when the interpreter exits.
    while chunk := os.read(pipe.fileno(), CHUNK_BYTES):
        yield chunk


def _write_all(descriptor: int, lines: Iterable[bytes]) -> None:
    data = memoryview(b"".join(line + b"\n" for line in lines))
    while data:
        data = data[os.write(descriptor, data) :]
