"""A reference to a secret, so that options and pickles need not contain the secret."""

from dataclasses import dataclass, field

from eventproc._base.secrets import is_reference, read_secret
from eventproc._base.settings import check_settings
from eventproc.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Secret:
    """An environment variable (``env:NAME``), a file (``file:PATH``), or the secret itself.

    The file has the secret in one line; the variable has the secret, or ``file:PATH``.

    A reference is resolved where and when the secret is used: on the driver and on each executor.
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
        return is_reference(self.reference)

    def read(self) -> str:
        """Return the secret.

        Raises:
            ConfigurationError: this machine does not have the variable, or not the file with one
                line.
        """
        try:
            return read_secret(self.reference)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"{error.message}. The driver and every executor need it"
            ) from error
