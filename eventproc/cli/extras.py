"""Optional packages: what is missing is said with the command that installs it."""

from collections.abc import Iterator
from contextlib import contextmanager

from eventproc.errors import ConfigurationError


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """Import inside of this what the extra brings.

    Raises:
        ConfigurationError: A package is not installed; the message gives the command.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("eventproc"):
            raise
        raise ConfigurationError(
            f"this needs the package {error.name}, which is not installed: "
            f"pip install 'eventproc[{extra}]'"
        ) from error
