"""Watch standard input, which tells a child process that its parent has ended.

The operating system closes the parent's end of the pipe, even if the parent was killed and could
not send a signal.
"""

import os
import signal
import threading
from collections.abc import Callable
from typing import Final

STANDARD_INPUT: Final = 0


def stop_at_end_of_input() -> None:
    """Start a thread that sends SIGTERM to this process when standard input ends."""
    watch_input(lambda: os.kill(os.getpid(), signal.SIGTERM))


def watch_input(at_end: Callable[[], None], at_data: Callable[[], None] = lambda: None) -> None:
    """Start a thread that calls *at_data* when there is input, and *at_end* when it ends."""

    def watch() -> None:
        # Not through sys.stdin: this thread would hold its lock when the interpreter exits.
        while os.read(STANDARD_INPUT, 4096):
            at_data()
        at_end()

    threading.Thread(target=watch, name="input", daemon=True).start()
