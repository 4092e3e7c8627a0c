"""Checkpoints as a file: JSON that a person can read, and another store or group can take.

A state is base64. Delivery counts stay behind: they tell of the processes that were there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from eventproc.cli.checkpoints.records import Record
from eventproc.errors import ConfigurationError, StateUnreadableError
from eventproc.models import ConsumerGroup, SequenceRange
from eventproc.operator import Move
from eventproc.state import JsonCodec

FORMAT: Final = "eventproc-checkpoints"
VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedCheckpoint:
    """One partition in the file."""

    partition_id: str
    offset: str | None
    sequence_number: int | None
    state: bytes | None = None
    state_sequence_number: int | None = None
    completed: list[tuple[int, int]] = field(default_factory=list)
    last_modified: datetime | None = None

    @property
    def is_state_in_step(self) -> bool:
        """Whether the state belongs to the position that it stands beside."""
        return self.state_sequence_number == self.sequence_number

    def as_move(self) -> Move:
        """What puts it into a store.

        Raises:
            ConfigurationError: It lacks a part that every reader of a store needs.
        """
        if not self.offset or self.sequence_number is None:
            raise ConfigurationError(
                f"partition {self.partition_id} lacks offset or sequence number: remove it from "
                "the file, and use `eventproc checkpoints reset` for it"
            )
        try:
            return Move(
                partition_id=self.partition_id,
                offset=self.offset,
                sequence_number=self.sequence_number,
                state=(self.state if self.is_state_in_step else None) or b"",
                completed=tuple(SequenceRange(*ends) for ends in self.completed),
            )
        except ValueError as error:
            raise ConfigurationError(f"partition {self.partition_id}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedGroup:
    """The whole file."""

    format: str
    version: int
    namespace: str
    eventhub: str
    consumer_group: str
    exported_at: datetime
    checkpoints: list[ExportedCheckpoint]

    def is_of_hub(self, group: ConsumerGroup) -> bool:
        """Whether its positions mean something in the hub of a group."""
        return (self.namespace.lower(), self.eventhub.lower()) == group.key[:2]


_CODEC: Final = JsonCodec(ExportedGroup, indent=2)


def exported(
    group: ConsumerGroup, records: Mapping[str, Record], *, exported_at: datetime
) -> ExportedGroup:
    """Make the contents of a file.

    Raises:
        ConfigurationError: A state is damaged: a file without it would be taken for all there is.
    """
    damaged = [p for p, record in records.items() if record.is_damaged]
    if damaged:
        raise ConfigurationError(
            f"the state of partition {damaged[0]} is damaged: restore its blob, or drop the state "
            f"with `eventproc checkpoints reset --partition {damaged[0]} --to +0`"
        )
    return ExportedGroup(
        format=FORMAT,
        version=VERSION,
        namespace=group.fully_qualified_namespace,
        eventhub=group.eventhub_name,
        consumer_group=group.name,
        exported_at=exported_at,
        checkpoints=[
            ExportedCheckpoint(
                partition_id=found.partition_id,
                offset=found.offset,
                sequence_number=found.sequence_number,
                state=found.state,
                state_sequence_number=found.state_sequence_number,
                completed=[(done.first, done.last) for done in found.completed],
                last_modified=found.last_modified,
            )
            for found in (record.checkpoint for record in records.values())
        ],
    )


def as_text(contents: ExportedGroup) -> str:
    """The text of a file, indented."""
    return _CODEC.encode(contents).decode() + "\n"


def read_file(path: Path) -> ExportedGroup:
    """Read a file that ``export`` wrote.

    Raises:
        ConfigurationError: There is none, or it is another kind of file.
    """
    try:
        contents = _CODEC.decode(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    except StateUnreadableError as error:
        raise ConfigurationError(f"{path} is not what `export` writes: {error}") from error
    if (contents.format, contents.version) != (FORMAT, VERSION):
        raise ConfigurationError(
            f"{path} has format {contents.format!r}, version {contents.version}: give a file of "
            f"format {FORMAT!r}, version {VERSION}"
        )
    ids = [checkpoint.partition_id for checkpoint in contents.checkpoints]
    _require_once(path, ids)
    return contents


def _require_once(path: Path, ids: Iterable[str]) -> None:
    seen: set[str] = set()
    for partition_id in ids:
        if partition_id in seen:
            raise ConfigurationError(f"{path} has partition {partition_id} twice")
        seen.add(partition_id)
