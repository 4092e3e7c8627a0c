"""References to secrets, so that a command line, an environment or a pickle need not have them.

Rule: only ``read_secret`` returns the secret, and nothing prints it.
"""

import os
from pathlib import Path
from typing import Final

from eventproc.errors import ConfigurationError

_VARIABLE: Final = "env:"
_FILE: Final = "file:"
_PEM: Final = "-----BEGIN "


def is_reference(text: str) -> bool:
    """Whether *text* says where a secret is, and is not the secret itself."""
    return text.startswith((_VARIABLE, _FILE))


def read_secret(text: str) -> str:
    """Return the secret, as it is now: whoever keeps it does not see a later change.

    Args:
        text: ``file:PATH``, a file that has the secret in one line, or a key or certificate in
            PEM; ``env:NAME``, an environment variable that has the secret or ``file:PATH``; or the
            secret itself.

    Raises:
        ConfigurationError: This process does not have the variable, or the file is missing, empty,
            not readable or has several lines.
    """
    if text.startswith(_VARIABLE):
        name = text.removeprefix(_VARIABLE)
        text = os.environ.get(name, "")
        if not text:
            raise ConfigurationError(
                f"the environment variable {name!r} is not set in this process: set it to the "
                "secret, or to file:PATH"
            )
    if text.startswith(_FILE):
        return _read_file(text.removeprefix(_FILE))
    return text


def _read_file(path: str) -> str:
    file = f"the secret's file {path!r}"
    try:
        # What writes a line into a file ends it; this is no part of the secret.
        secret = Path(path).read_text("utf-8").strip()
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"{file} does not exist on this machine: correct the path, or mount the secret there"
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be read ({error.strerror}): let the user of this process read it"
        ) from error
    except UnicodeDecodeError:
        # Not the error itself as the cause: it has the content.
        raise ConfigurationError(f"{file} is no text in UTF-8: write the secret anew") from None
    if not secret:
        raise ConfigurationError(f"{file} is empty: write the secret into it")
    if len(secret.splitlines()) > 1 and not secret.startswith(_PEM):
        raise ConfigurationError(f"{file} has several lines: leave the one that is the secret")
    return secret
