"""The command that an error message names as the remedy, with the options that were given."""

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

_STORE_INIT: Final = re.compile(r"`eventproc store init( --store [^`]+)?`")

_REPEATED: Final = ("--store", "--storage-account", "--ca-bundle", "--proxy")
"""Those of ``store init``, without the connection string: it is a secret."""


def with_given_options(message: str, arguments: Sequence[str]) -> str:
    """Return the message with ``eventproc store init`` as it is to be typed.

    What came from environment variables is still there for the next command.
    """

    def complete(found: re.Match[str]) -> str:
        given = [
            word
            for option, value in _values(arguments)
            if not (found[1] and option == "--store")
            for word in (option, value)
        ]
        named = f"eventproc store init{found[1] or ''}"
        return f"`{' '.join([named, *map(shlex.quote, given)])}`"

    return _STORE_INIT.sub(complete, message)


def _values(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each option to repeat with its value: ``--store X`` or ``--store=X``."""
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        option, is_joined, value = word.partition("=")
        if option not in _REPEATED:
            continue
        value = value if is_joined else following
        if not (option == "--proxy" and "@" in value):  # It has a password.
            yield option, value
