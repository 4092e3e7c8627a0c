"""One emulator for a directory: two that append to the same files would tear them."""

import sys
from pathlib import Path
from typing import IO

from eventproc.errors import ConfigurationError

if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class DirectoryLock:
    """Holds a directory from construction to ``release``; the system lets go of a dead holder's."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._file = (directory / ".lock").open("ab")
        try:
            _lock(self._file)
        except OSError as error:
            self._file.close()
            raise ConfigurationError(
                f"{directory} belongs to another emulator that is running: end it, or take "
                "another directory"
            ) from error

    def release(self) -> None:
        """Let go. Again does no harm."""
        self._file.close()
