"""Records of a whole group, such as the schema of a published placement."""

from dataclasses import dataclass
from typing import Final

from eventproc.errors import ConfigurationError, StoreError
from eventproc.models.checkpoint import WriteOutcome

RECORD_BYTES_MAX: Final = 4 * 1024 * 1024
"""Largest content of a group record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecord:
    """A named value that all processors of a group read, and one of them writes.

    It is stored apart from ownership, checkpoints and members, so no Azure SDK reads it.
    """

    name: str
    content: bytes
    etag: str | None = None
    """As last confirmed by the store; ``None`` for a record that was never written."""

    def __post_init__(self) -> None:
        """Check that every store can keep the record.

        Raises:
            ConfigurationError: the name is empty, or the content is too large.
        """
        if not self.name:
            raise ConfigurationError("the name of a group record is empty: give it one")
        if len(self.content) > RECORD_BYTES_MAX:
            raise ConfigurationError(
                f"the group record {self.name!r} has {len(self.content):,} bytes: the most is "
                f"{RECORD_BYTES_MAX:,}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordResult:
    """The outcome of a conditional write of a group record."""

    outcome: WriteOutcome
    record: GroupRecord | None = None
    """The record as stored, with its ETag, if won."""

    error: StoreError | None = None
    """Why the outcome is unknown, if the store reports it."""
