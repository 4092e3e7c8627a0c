"""Journals of calls: what each process handled, and when, in the order of one clock.

They are independent of the SDK, which does not read them: they exist to check its results. A
process may be killed at any moment, so each line is one write to a file opened for appending.
"""

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from eventproc.cli.demo.rabbitmq.orders import Order


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a handler."""

    writer: str
    """The process: the name of the pod, and the process id."""

    queue: str
    entered_ns: int
    left_ns: int | None
    """``None`` if the process was killed in it, or it still runs."""

    orders: tuple[Order, ...]
    """What was handled in it; empty if it did not end."""


class CallWriter:
    """Appends the calls of a process to its journal."""

    def __init__(self, folder: Path, pod: str) -> None:
        path = folder / f"{pod}.{os.getpid()}.calls"
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def enter(self, queue: str) -> None:
        """Note that a call begins."""
        os.write(self._file, f"> {queue} {time.monotonic_ns()}\n".encode())

    def leave(self, queue: str, orders: Iterable[Order]) -> None:
        """Note that it ends, and what it has handled."""
        text = " ".join(f"{customer}:{number}" for customer, number in orders)
        os.write(self._file, f"< {queue} {time.monotonic_ns()} {text}\n".encode())

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class CallReader:
    """Reads the journals of a folder while they are being written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offset_by_path: dict[Path, int] = {}
        self._entered_ns: dict[tuple[str, str], int] = {}
        self._ended: list[Call] = []

    def read(self) -> list[Call]:
        """Return the calls that have ended since the last call of this."""
        found: list[Call] = []
        for path in sorted(self._folder.glob("*.calls")):
            with path.open("rb") as file:
                file.seek(self._offset_by_path.get(path, 0))
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._offset_by_path[path] = self._offset_by_path.get(path, 0) + len(whole)
            found += self._calls(path.stem, whole.decode().splitlines())
        self._ended += found
        return found

    @property
    def calls(self) -> list[Call]:
        """All calls that were read so far; also those that have not ended."""
        return self._ended + [
            Call(writer=writer, queue=queue, entered_ns=at_ns, left_ns=None, orders=())
            for (writer, queue), at_ns in self._entered_ns.items()
        ]

    def _calls(self, writer: str, lines: Iterable[str]) -> Iterator[Call]:
        for line in lines:
            kind, queue, at, *orders = line.split(" ")
            if kind == ">":
                self._entered_ns[writer, queue] = int(at)
                continue
            yield Call(
                writer=writer,
                queue=queue,
                entered_ns=self._entered_ns.pop((writer, queue)),
                left_ns=int(at),
                orders=tuple(_order(text) for text in orders if text),
            )


def _order(text: str) -> Order:
    customer, _, number = text.partition(":")
    return customer, int(number)
