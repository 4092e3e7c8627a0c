"""The version of the installed package."""

from importlib.metadata import PackageNotFoundError, version
from typing import Final


def _eventproc_version() -> str:
    try:
        return version("eventproc")
    except PackageNotFoundError:
        return "0"


EVENTPROC_VERSION: Final = _eventproc_version()
"""Read once, at import: reading it is file access, which would block an event loop."""

__version__: Final = EVENTPROC_VERSION
