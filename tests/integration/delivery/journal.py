"""The journal of a fleet: a file to which processes append what they do."""

import json
import os
from collections.abc import Callable


def journal_writer(path: str, owner_id: str) -> Callable[..., None]:
    """Return a function that appends a line to the journal of all processes."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def record(*facts: object) -> None:
        """Append a line at once, because the process may be killed at any time."""
        os.write(file, (json.dumps([owner_id, *facts]) + "\n").encode())

    return record
