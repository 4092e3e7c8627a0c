"""Start and signal the demo's child processes, which end with it (``start_child``)."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from eventproc._command.terminal.ends import start_child
from eventproc._command.terminal.help import HEADINGS, variable_of
from eventproc.errors import EventProcError

POLL_S: Final = 0.02
LOG_TAIL_LINES: Final = 5

USERS_VARIABLES: Final = (
    *(variable_of(option) for options in HEADINGS.values() for option in options),
    "AZURE_STORAGE_CONNECTION_STRING",
)
"""The environment variables of the options of ``run`` and ``hold``, which are the user's own."""


class ChildFailedError(EventProcError):
    """A process of the demo failed; the message quotes the end of its log."""


class Child:
    """A child process; its output and its log are files in ``folder``."""

    def __init__(
        self, name: str, arguments: Sequence[str], *, folder: Path, env: Mapping[str, str]
    ) -> None:
        self._name = name
        self._output = folder / f"{name}.out"
        self._log = folder / f"{name}.log"
        # The demo's own hub and store, whatever the user's environment names.
        others = dict.fromkeys(USERS_VARIABLES, "")
        with self._output.open("wb") as output, self._log.open("wb") as log:
            self._process = start_child(
                [sys.executable, *arguments], stdout=output, stderr=log, env={**others, **env}
            )

    @property
    def exit_code(self) -> int | None:
        """The exit code; ``None`` while the process runs."""
        return self._process.poll()

    def write_line(self) -> None:
        """Write a line to the standard input; does nothing if the process has ended."""
        with suppress(BrokenPipeError):
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()

    def signal(self, number: int) -> None:
        """Send a signal; does nothing if the process has ended."""
        self._process.send_signal(number)

    async def first_line(self, timeout_s: float) -> str:
        """Wait for the first line of the output.

        Raises:
            ChildFailedError: The process ended, or wrote none in time.
        """
        for _ in range(round(timeout_s / POLL_S)):
            self.check()
            if "\n" in (text := self._output.read_text("utf-8")):
                return text.partition("\n")[0]
            await asyncio.sleep(POLL_S)
        raise ChildFailedError(f"the process {self._name!r} did not start in {timeout_s:.0f} s")

    async def ended(self, timeout_s: float) -> int:
        """Wait until the process has ended; kill it after ``timeout_s``. Return the exit code."""
        for _ in range(round(timeout_s / POLL_S)):
            if self.exit_code is not None:
                break
            await asyncio.sleep(POLL_S)
        self._process.kill()
        return self._process.wait()

    def check(self) -> None:
        """Check that the process runs, or ended with exit code 0.

        Raises:
            ChildFailedError: The process ended with another exit code.
        """
        if self.exit_code:
            tail = self._log.read_text("utf-8", "replace").splitlines()[-LOG_TAIL_LINES:]
            raise ChildFailedError(
                f"the process {self._name!r} ended with exit code {self.exit_code}: "
                + " / ".join(tail)
            )

    def close(self) -> None:
        """Kill the process if it runs, and close the pipe."""
        self._process.kill()
        self._process.wait()
        with suppress(BrokenPipeError):
            self._process.stdin.close()


class Children:
    """The child processes of the demo, by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment: dict[str, str] = {}
        """Environment variables of the processes that start from now on."""

        self._child_by_name: dict[str, Child] = {}

    def start(self, name: str, arguments: Sequence[str]) -> Child:
        """Start a Python process that ends when this one does."""
        child = Child(name, arguments, folder=self.folder, env=self.environment)
        self._child_by_name[name] = child
        return child

    def kill(self, name: str) -> None:
        """End a process at once: SIGKILL, or its equivalent on Windows."""
        self._child_by_name.pop(name).close()

    def check(self) -> None:
        """Check that each process that was not killed runs, or ended with exit code 0.

        Raises:
            ChildFailedError: One ended with another exit code.
        """
        for child in self._child_by_name.values():
            child.check()

    def close(self) -> None:
        """End all processes."""
        for child in self._child_by_name.values():
            child.close()
