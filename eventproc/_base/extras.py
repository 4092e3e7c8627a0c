"""Optional packages: an import that fails names the extra to install."""

from collections.abc import Iterator
from contextlib import contextmanager

from eventproc.errors import MissingExtraError


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
