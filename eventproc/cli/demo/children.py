"""Start and signal the demo's child processes, which end with it (``start_child``)."""

import asyncio
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from eventproc.cli.access.variables import VARIABLES
from eventproc.cli.terminal.end_of_input import start_child
from eventproc.errors import EventProcError

POLL_S: Final = 0.02
LOG_TAIL_LINES: Final = 5


class ChildFailedError(EventProcError):
    """A process of the demo failed; the message quotes the end of its log."""


class Child:
    """A child process; its output and its log are files in ``folder``."""

    def __init__(
        self, name: str, arguments: Sequence[str], *, folder: Path, env: Mapping[str, str]
    ) -> None:
        self.name = name
        self.output = folder / f"{name}.out"
        self.log = folder / f"{name}.log"
        # The demo's own hub and store, whatever the user's environment names.
        others = dict.fromkeys(VARIABLES, "")
        with self.output.open("wb") as output, self.log.open("wb") as log:
            self._process = start_child(
                [sys.executable, *arguments], stdout=output, stderr=log, env={**others, **env}
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code; ``None`` while the process runs."""
        return self._process.poll()

    def send_line(self, line: str) -> None:
        """Write a line to the standard input; does nothing if the process has ended."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()

    def terminate(self) -> None:
        """Ask the process to stop gracefully: SIGTERM."""
        if self.exit_code is None:
            self._process.send_signal(signal.SIGTERM)

    def freeze(self) -> None:
        """Suspend the process: SIGSTOP."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume the process: SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the process at once: SIGKILL, or its equivalent on Windows."""
        if self.exit_code is None:
            self._process.kill()
        self._process.wait()

    async def ended(self, timeout_s: float) -> int:
        """Wait until the process has ended; kill it after ``timeout_s``. Return the exit code."""
        waited_s = 0.0
        while self.exit_code is None and waited_s < timeout_s:
            await asyncio.sleep(POLL_S)
            waited_s += POLL_S
        self.kill()
        code = self.exit_code
        assert code is not None
        return code

    def check(self) -> None:
        """Check that the process runs, or ended with exit code 0.

        Raises:
            ChildFailedError: The process ended with another exit code.
        """
        if self.exit_code:
            tail = self.log.read_text("utf-8", "replace").splitlines()[-LOG_TAIL_LINES:]
            raise ChildFailedError(
                f"the process {self.name!r} ended with exit code {self.exit_code}: "
                + " / ".join(tail)
            )

    def close(self) -> None:
        """Kill the process if it runs, and close the pipe. May be called again."""
        self.kill()
        if self._process.stdin is not None and not self._process.stdin.closed:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
