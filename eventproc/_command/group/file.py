"""Export checkpoints to a JSON file, and import them into another store or group.

States are encoded in base64. Isolations are not exported: they tell of crashes of the exporting
group's processes.
"""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Final, TextIO

from checkpointstores._fields import require_partition_id
from eventproc._command.group.records import Record
from eventproc.admin import CheckpointMove
from eventproc.errors import ConfigurationError, StateUnreadableError
from eventproc.models import Checkpoint, ConsumerGroup, SequenceRange
from eventproc.state import JsonCodec

FORMAT: Final = "eventproc-checkpoints"
VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedCheckpoint:
    """The checkpoint of one partition in the file."""

    partition_id: str
    offset: str | None
    sequence_number: int | None
    state: bytes | None = None
    state_sequence_number: int | None = None
    completed: list[tuple[int, int]] = field(default_factory=list)
    last_modified: datetime | None = None

    @property
    def is_state_in_step(self) -> bool:
        """Whether the state belongs to this checkpoint's position."""
        return self.state_sequence_number == self.sequence_number

    def as_move(self) -> CheckpointMove:
        """Return the move that writes this checkpoint to a store.

        Raises:
            ConfigurationError: Offset or sequence number is missing, or a value is not valid in a
                store.
        """
        require_partition_id(self.partition_id)
        if not self.offset or self.sequence_number is None:
            raise ConfigurationError(
                f"partition {self.partition_id} lacks offset or sequence number: remove it from "
                "the file and use `eventproc checkpoints reset` for it"
            )
        try:
            return CheckpointMove(
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
    """The contents of a file."""

    format: str
    version: int
    namespace: str
    eventhub: str
    consumer_group: str
    exported_at: datetime
    checkpoints: list[ExportedCheckpoint]

    def is_of_hub(self, group: ConsumerGroup) -> bool:
        """Whether the checkpoints are of the same event hub as this group."""
        return (self.namespace.lower(), self.eventhub.lower()) == group.key[:2]


_CODEC: Final = JsonCodec(ExportedGroup, indent=2)
_END: Final = "\n  ]\n}\n"
"""The end of a file, after the last checkpoint."""


def require_exportable(group: ConsumerGroup, records: Collection[Record]) -> None:
    """Refuse what must not be exported.

    Raises:
        ConfigurationError: A state is damaged: exporting without it would lose it unnoticed. Or
            there are no checkpoints, which is most likely a mistyped name.
    """
    if not records:
        raise ConfigurationError(
            f"consumer group {group.name!r} of event hub {group.eventhub_name!r} has no "
            "checkpoints in this store, so nothing was exported: check the names of group, hub and "
            "store"
        )
    damaged = [record.checkpoint.partition_id for record in records if record.is_damaged]
    if damaged:
        raise ConfigurationError(
            f"the state of partition {damaged[0]} is damaged: restore its blob, or drop the state "
            f"with `eventproc checkpoints reset --partition {damaged[0]} --to +0`"
        )


async def write_exported(
    out: TextIO,
    group: ConsumerGroup,
    parts: AsyncIterator[Sequence[Record]],
    *,
    exported_at: datetime,
) -> int:
    """Write the contents of a file; return the number of checkpoints.

    Each part is written before the next one is read: all states together may exceed the memory.

    Raises:
        ConfigurationError: as ``require_exportable``; what was written until then is no JSON.
    """
    empty = ExportedGroup(
        format=FORMAT,
        version=VERSION,
        namespace=group.fully_qualified_namespace,
        eventhub=group.eventhub_name,
        consumer_group=group.name,
        exported_at=exported_at,
        checkpoints=[],
    )
    begin = as_text(empty).removesuffix("]\n}\n")
    count = 0
    async for records in parts:
        require_exportable(group, records)
        checkpoints = [_exported(record.checkpoint) for record in records]
        text = as_text(replace(empty, checkpoints=checkpoints)).removesuffix(_END)
        out.write("," + text.removeprefix(begin) if count else text)
        count += len(records)
    if not count:
        require_exportable(group, ())
    out.write(_END)
    return count


def _exported(found: Checkpoint) -> ExportedCheckpoint:
    return ExportedCheckpoint(
        partition_id=found.partition_id,
        offset=found.offset,
        sequence_number=found.sequence_number,
        state=found.state,
        state_sequence_number=found.state_sequence_number,
        completed=[(done.first, done.last) for done in found.completed],
        last_modified=found.last_modified,
    )


def as_text(contents: ExportedGroup) -> str:
    """Encode the contents of a file as indented JSON."""
    return _CODEC.encode(contents).decode() + "\n"


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that was read, with its text, so that errors can name a line."""

    path: Path
    contents: ExportedGroup
    text: str

    def moves(self, partition_ids: Sequence[str]) -> list[CheckpointMove]:
        """Return the moves that write these checkpoints to a store; of all, if none is named.

        Raises:
            ConfigurationError: A checkpoint is missing from the file or is not valid in a store.
        """
        index_of = {c.partition_id: at for at, c in enumerate(self.contents.checkpoints)}
        moves = []
        for partition_id in partition_ids or list(index_of):
            if partition_id not in index_of:
                raise ConfigurationError(f"{self.path} has no partition {partition_id}")
            at = index_of[partition_id]
            try:
                moves.append(self.contents.checkpoints[at].as_move())
            except ConfigurationError as error:
                where = _location(self.path, self.text, at)
                raise ConfigurationError(f"{where}: {error}. Nothing was changed") from error
        return moves


@contextmanager
def new_file(path: Path, *, overwrites: bool) -> Iterator[TextIO]:
    """Open a file to write. If the block fails, what was at the path before is there again.

    Raises:
        ConfigurationError: The file cannot be written; or it exists, and is not to be replaced.
    """
    written = path.with_name(f"{path.name}.part") if overwrites else path
    try:
        with written.open("w" if overwrites else "x", encoding="utf-8") as file:
            try:
                yield file
                file.flush()  # The rest may have no room on the disk.
            except BaseException:
                written.unlink()
                raise
        written.replace(path)
    except FileExistsError as error:
        raise ConfigurationError(
            f"{path} exists already, and may be the only copy of other checkpoints: give another "
            "name, or --overwrite to replace it"
        ) from error
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from error


def read_file(path: Path) -> ReadFile:
    """Read a file that ``export`` wrote.

    Raises:
        ConfigurationError: The file cannot be read or is of another kind.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    text = data.decode(errors="replace")
    try:
        contents = _CODEC.decode(data)
    except StateUnreadableError as error:
        wrong = _INDEX.search(str(error))
        where = str(path) if wrong is None else _location(path, text, int(wrong[1]))
        why = error.__cause__ or error
        raise ConfigurationError(f"{where} is not what `export` writes: {why}") from error
    if (contents.format, contents.version) != (FORMAT, VERSION):
        raise ConfigurationError(
            f"{path} has format {contents.format!r}, version {contents.version}: give a file of "
            f"format {FORMAT!r}, version {VERSION}"
        )
    if not contents.checkpoints:
        raise ConfigurationError(f"{path} has no checkpoints: there is nothing to import")
    for partition_id, count in Counter(c.partition_id for c in contents.checkpoints).items():
        if count > 1:
            raise ConfigurationError(f"{path} has partition {partition_id} twice")
    return ReadFile(path, contents, text)


_INDEX: Final = re.compile(r"\$\.checkpoints\[(\d+)\]")
_CHECKPOINTS: Final = re.compile(r'"checkpoints"\s*:\s*\[')


def _location(path: Path, text: str, index: int) -> str:
    """Return the path, and the line on which the checkpoint with this index begins."""
    begin = _CHECKPOINTS.search(text)
    if begin is None:
        return str(path)
    at, decoder = begin.end(), json.JSONDecoder(parse_int=str, parse_float=str)
    try:
        for _ in range(index):
            at = decoder.raw_decode(text, _next_value(text, at))[1]
    except (ValueError, RecursionError):
        return str(path)
    return f"{path}, line {text.count(chr(10), 0, _next_value(text, at)) + 1}"


def _next_value(text: str, at: int) -> int:
    while at < len(text) and (text[at].isspace() or text[at] == ","):
        at += 1
    return at
