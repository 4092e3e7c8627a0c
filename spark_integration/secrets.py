"""A secret, or rather where it is: what travels in options and pickles names it only.

Rule: no method here but ``read`` returns it, and nothing prints it.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path

from eventproc.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Secret:
    """``env:NAME``, ``file:PATH``, or the secret itself.

    It is looked up where it is used: on the driver and on each executor.
    """

    reference: str = field(repr=False)

    def __str__(self) -> str:
        return self.reference if self.is_reference else "(hidden)"

    @property
    def is_reference(self) -> bool:
        """Whether it only says where the secret is."""
        return self.reference.startswith(("env:", "file:"))

    def read(self) -> str:
        """Look the secret up.

        Raises:
            ConfigurationError: there is nothing in that place on this machine.
        """
        kind, _, place = self.reference.partition(":")
        if not self.is_reference:
            return self.reference
        if kind == "env":
            value = os.environ.get(place)
            if not value:
                raise ConfigurationError(
                    f"the environment variable {place!r} is not set in this process: it has to be "
                    "on the driver and on every executor"
                )
            return value
        try:
            return Path(place).read_text("utf-8").strip()
        except OSError as error:
            raise ConfigurationError(
                f"the secret's file {place!r} cannot be read: {error.strerror}. It has to be there "
                "on the driver and on every executor"
            ) from error
