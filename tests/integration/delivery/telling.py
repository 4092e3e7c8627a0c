"""How a process tells what it does, to whoever reads the story afterwards."""

import json
import os
from collections.abc import Callable


def teller(path: str, owner_id: str) -> Callable[..., None]:
    """Return what writes a line about some facts, all processes into one file."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def tell(*facts: object) -> None:
        """Write it at once: the next moment may be the last one."""
        os.write(file, (json.dumps([owner_id, *facts]) + "\n").encode())

    return tell
