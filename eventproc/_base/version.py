"""The version of the installed package."""

from importlib.metadata import PackageNotFoundError, version
from typing import Final


def _version() -> str:
    try:
        return version("eventproc")
    except PackageNotFoundError:
        return "0"


__version__: Final = _version()
"""Read once, at import: reading it is file access, which would block an event loop."""
