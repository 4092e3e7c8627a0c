"""Entry point of the ``eventproc`` command: handles signals before the longer imports.

Importing the library, the command and a user's handler takes a second or more, and Kubernetes or
systemd may send a signal in that time. What is imported before the signal handlers are installed
takes a few milliseconds: ``eventproc`` imports its names when they are first used.

Verbs install their own signal handlers as soon as they have something to stop.
"""

import atexit
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from eventproc._command import main as run_command
from eventproc._command.terminal.exits import INTERRUPTED

STANDARD_ERROR = 2

SERVING: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("run", "hold", "emulator", "dashboard"), ()),
    "scale": ("--watch", "--http", "--grpc"),
}
"""Verbs that run until a signal ends them: for these, the exit code is then 0.

A verb with options does so if one of them is given.
"""


def main() -> int:
    """Run the command line of this process, and return the exit code."""
    arguments = sys.argv[1:]
    handle_early_signals(arguments)
    code = run_command(arguments)
    keep_exit_code(code)
    return code


def keep_exit_code(code: int) -> None:
    """Let no signal replace the exit code from here on, while Python shuts down.

    With -15 systemd or Kubernetes would take the process for one that was killed.
    """

    def end(_: int, __: FrameType | None) -> None:
        sys.stdout.flush()
        os._exit(code)  # Whatever Python still waits for may be what the signal is about.

    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, end)
            # Python gives handlers up before it ends; signals that are ignored stay so.
            atexit.register(signal.signal, number, signal.SIG_IGN)


def handle_early_signals(arguments: Sequence[str]) -> None:
    """End the process with a message and an exit code on the first signal; at once on a second.

    For verbs that do not serve, SIGINT still raises ``KeyboardInterrupt``, so that they clean up.
    """
    is_serving = _is_serving(arguments)
    numbers = [signal.SIGTERM, signal.SIGINT] if is_serving else [signal.SIGTERM]

    def end(number: int, _: FrameType | None) -> None:
        for other in numbers:
            signal.signal(other, signal.SIG_DFL)
        name = signal.Signals(number).name
        # Not ``print``, which the signal may have interrupted.
        os.write(STANDARD_ERROR, f"eventproc: ended by {name}, nothing was under way\n".encode())
        # Imports and event loops do not catch ``SystemExit``.
        raise SystemExit(0 if is_serving else INTERRUPTED)

    for number in numbers:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, end)


def _is_serving(arguments: Sequence[str]) -> bool:
    verb = next((word for word in arguments if not word.startswith("-")), "")
    options = SERVING.get(verb)
    if options is None:
        return False
    given = {word.partition("=")[0] for word in arguments}
    return not options or not given.isdisjoint(options)
