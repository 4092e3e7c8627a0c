"""Stop this process when its standard input ends.

A child process learns in this way that its parent has ended: the operating system closes the
parent's end of the pipe, even if the parent was killed and could not send a signal.
"""

import os
import signal
import threading
from typing import Final

STANDARD_INPUT: Final = 0


def stop_at_end_of_input() -> None:
    """Start a thread that sends SIGTERM to this process when standard input ends."""

    def watch() -> None:
        # Not through sys.stdin: this thread would hold its lock when the interpreter exits.
        while os.read(STANDARD_INPUT, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="end-of-input", daemon=True).start()
