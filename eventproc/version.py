"""Which eventproc this is."""

from importlib.metadata import PackageNotFoundError, version
from typing import Final


def _eventproc_version() -> str:
    try:
        return version("eventproc")
    except PackageNotFoundError:
        return "0"


EVENTPROC_VERSION: Final = _eventproc_version()
"""Read once: it lies in a file, and an event loop is no place to read files."""
