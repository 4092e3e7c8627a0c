"""The demo's processes: started, signalled, and never left behind.

Rule: a child dies with its parent, however the parent ends. Each has a pipe to us as standard
input and ends when that ends; one that is frozen then is ended by the system, which does not leave
stopped processes without anybody who could continue them. Each is in a process group of its own,
so that Ctrl+C reaches only us.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from eventproc.errors import EventProcError

POLL_S: Final = 0.02
LAST_WORDS_LINES: Final = 5


class ChildFailedError(EventProcError):
    """A process of the demo ended by itself; the message quotes its last words."""


class Child:
    """One process; what it prints goes to files in ``folder``."""

    def __init__(
        self, name: str, arguments: Sequence[str], *, folder: Path, env: Mapping[str, str]
    ) -> None:
        self.name = name
        self.output = folder / f"{name}.out"
        self.log = folder / f"{name}.log"
        with self.output.open("wb") as output, self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=log,
                env={**os.environ, **env},
                process_group=0 if os.name == "posix" else None,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """``None`` while it runs."""
        return self._process.poll()

    def tell(self, line: str) -> None:
        """Write a line to its standard input; one that has ended is not told."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()

    def terminate(self) -> None:
        """Ask it to stop in good order."""
        if self.exit_code is None:
            self._process.send_signal(signal.SIGTERM)

    def freeze(self) -> None:
        """Let it stand still: SIGSTOP."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on: SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once: SIGKILL, where there is one."""
        if self.exit_code is None:
            self._process.kill()
        self._process.wait()

    async def ended(self, timeout_s: float) -> int:
        """Wait until it has ended; one that does not is killed."""
        waited_s = 0.0
        while self.exit_code is None and waited_s < timeout_s:
            await asyncio.sleep(POLL_S)
            waited_s += POLL_S
        self.kill()
        code = self.exit_code
        assert code is not None
        return code

    def check(self) -> None:
        """Make sure that it runs, or ended well.

        Raises:
            ChildFailedError: It ended by itself, with an exit code other than 0.
        """
        if self.exit_code:
            raise ChildFailedError(
                f"the process {self.name!r} ended with exit code {self.exit_code}: "
                + " / ".join(self.last_words())
            )

    def last_words(self) -> list[str]:
        """Return the last lines that it wrote to standard error."""
        return self.log.read_text("utf-8", "replace").splitlines()[-LAST_WORDS_LINES:]

    def close(self) -> None:
        """End it whatever it does, and let go of the pipe. Again does no harm."""
        self.kill()
        if self._process.stdin is not None and not self._process.stdin.closed:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
