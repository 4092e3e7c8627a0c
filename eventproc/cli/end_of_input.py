"""Stopping when standard input ends: how a child learns that its parent is gone.

A pipe's end closes with the process that held it, however that ended. A signal needs somebody to
send it.
"""

import os
import signal
import threading
from typing import Final

STANDARD_INPUT: Final = 0


def stop_at_end_of_input() -> None:
    """From now on, end this process as SIGTERM would once standard input ends."""

    def watch() -> None:
        # Past Python's buffer, whose lock this thread would hold when the interpreter ends.
        while os.read(STANDARD_INPUT, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="end-of-input", daemon=True).start()
