"""References to secrets, so that options and pickles need not contain the secrets.

Rule: only ``Secret.read`` returns the secret, and nothing prints it.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path

from eventproc._base.settings import check_settings
from eventproc.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Secret:
    """An environment variable (``env:NAME``), a file (``file:PATH``), or the secret itself.

    A reference is resolved where the secret is used: on the driver and on each executor.
    """

    __module__ = "spark_integration"

    reference: str = field(repr=False)

    def __post_init__(self) -> None:
        """Check that the reference is a string."""
        check_settings(self)

    def __str__(self) -> str:
        return self.reference if self.is_reference else "(hidden)"

    @property
    def is_reference(self) -> bool:
        """Whether this is a reference, and not the secret itself."""
        return self.reference.startswith(("env:", "file:"))

    def read(self) -> str:
        """Return the secret.

        Raises:
            ConfigurationError: this machine does not have the variable or the file.
        """
        kind, _, place = self.reference.partition(":")
        if not self.is_reference:
            return self.reference
        if kind == "env":
            value = os.environ.get(place)
            if not value:
                raise ConfigurationError(
                    f"the environment variable {place!r} is not set in this process: set it on the "
                    "driver and on every executor"
                )
            return value
        try:
            return Path(place).read_text("utf-8").strip()
        except OSError as error:
            raise ConfigurationError(
                f"the secret's file {place!r} cannot be read: {error.strerror}. The driver and "
                "every executor need it"
            ) from error
