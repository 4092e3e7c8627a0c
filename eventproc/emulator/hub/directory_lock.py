"""A lock on a directory: two emulators that append to the same files would corrupt them."""

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
    """Locks a directory until ``release``. The system releases the lock when the process ends."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._file = (directory / ".lock").open("ab")
        try:
            _lock(self._file)
        except OSError as error:
            self._file.close()
            raise ConfigurationError(
                f"{directory} is in use by another emulator that is running: stop it, or "
                "choose another directory"
            ) from error

    def release(self) -> None:
        """Release the lock. Repeating is harmless."""
        self._file.close()
