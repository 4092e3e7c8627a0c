"""The version of the installed package.

Optional packages: an import that fails names the extra to install.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from eventproc.errors import ConfigurationError


class MissingExtraError(ConfigurationError, ModuleNotFoundError):
    """A package of an extra is not installed; the message gives the command to install it."""


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """Import packages of an extra inside this context manager.

    Raises:
        MissingExtraError: A package is not installed.
    """
    try:
        yield
    except MissingExtraError:
        raise
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in {"eventproc", "checkpointstores"}:
            raise
        missing = MissingExtraError(
            f"this needs the extra {extra!r} (there is no module {error.name!r}): "
            f"pip install 'eventproc[{extra}]'"
        )
        missing.name = error.name
        raise missing from error


def _eventproc_version() -> str:
    try:
        return version("eventproc")
    except PackageNotFoundError:
        return "0"


EVENTPROC_VERSION: Final = _eventproc_version()
"""Read once, at import: reading it is file access, which would block an event loop."""

__version__: Final = EVENTPROC_VERSION
