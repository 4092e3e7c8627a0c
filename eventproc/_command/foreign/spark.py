"""Reads positions from the ``checkpointLocation`` of a Spark query.

``offsets/N`` has the planned end of batch N: a line ``v1``, a line of metadata, and a line for each
source. ``commits/N`` shows that the batch was handled. So the position of a query is the end of its
last *committed* batch: a planned one is run again.

The connector for Event Hubs and Spark's Kafka source write the same text: the kind that the user
gives says whether it has sequence numbers or Kafka offsets.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from eventproc._base.bounded_json import LENGTH_MAX, read_json
from eventproc._command.arguments.address import HubAddress
from eventproc._command.foreign.found import FoundGroup, FoundPosition, position_before
from eventproc._command.foreign.place import Place
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup

_DIGITS_MAX: Final = 19
_NO_OFFSET: Final = "-"
_REMEDY: Final = (
    "give the checkpointLocation of a query, the folder that has `offsets` and `commits`; if it is "
    "elsewhere, copy it to this machine"
)


@dataclass(frozen=True, slots=True)
class QueryFolder:
    """The folder of a query."""

    is_ours: bool
    """Whether the source is eventproc's: its text has the namespace, too."""

    async def read(self, place: Place, address: HubAddress) -> FoundGroup:
        """Read the positions of the query.

        Raises:
            ConfigurationError: The folder is none of a query, or not of this hub.
        """
        group = place.group(address.group())
        return await asyncio.to_thread(self.find, Path(place.name), group)

    def find(self, folder: Path, group: ConsumerGroup) -> FoundGroup:
        """Read the positions of the query in this folder, as ``read`` does."""
        folder = folder.expanduser()
        planned, committed = _batches(folder / "offsets"), _batches(folder / "commits")
        if not planned & committed:
            raise ConfigurationError(
                f"{folder}: no batch of this query was committed, so it has no position to go on "
                "from: start the group where the query was to start"
            )
        done = max(planned & committed)
        newest, notes = max(planned), list[str]()
        if newest > done:
            notes.append(
                f"batch {newest} was planned and not committed: its events are delivered again. If "
                "the query still runs, it is handling them now"
            )
        where = folder / "offsets" / str(done)
        return FoundGroup(positions=self._positions(where, group), notes=notes)

    def _positions(self, file: Path, group: ConsumerGroup) -> Sequence[FoundPosition]:
        sources = [_parsed(line) for line in _source_lines(file)]
        of_hub = [found for found in sources if self._is_of(found, group)]
        if len(of_hub) != 1:
            has = ", ".join(filter(None, map(_hub_in, sources))) or "none"
            raise ConfigurationError(
                f"{file} has {len(of_hub)} sources of event hub {group.eventhub_name!r}; the hubs "
                f"of its sources are: {has}. Give ?eventhub=NAME, or ?namespace=HOST, if their "
                "names differ from yours; and spark:FOLDER for eventproc's source, "
                "spark-connector:FOLDER for Microsoft's connector, or spark-kafka:FOLDER for "
                "Spark's Kafka source"
            )
        (found,) = of_hub
        following = found["next"] if self.is_ours else next(iter(found.values()))
        if not isinstance(following, Mapping):
            raise ConfigurationError(f"{file}: {following!r:.100} has no positions of partitions")
        since = _created_in(file, found) if self.is_ours else None
        return [position_before(p, n, str(file), since) for p, n in following.items()]

    def _is_of(self, found: Mapping[str, object], group: ConsumerGroup) -> bool:
        if self.is_ours:
            name = f"{group.fully_qualified_namespace}/{group.eventhub_name}"
            return "next" in found and str(found.get("hub")).lower() == name.lower()
        return [name.lower() for name in found] == [group.eventhub_name.lower()]


def _batches(folder: Path) -> set[int]:
    """Return the numbers of the batches that a log has.

    Raises:
        ConfigurationError: It cannot be read.
    """
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError as error:
        raise ConfigurationError(
            f"{folder} cannot be read ({error.strerror}): {_REMEDY}"
        ) from error
    return {int(n) for n in names if n.isascii() and n.isdigit() and len(n) <= _DIGITS_MAX}


def _source_lines(file: Path) -> list[str]:
    try:
        with file.open("rb") as opened:
            content = opened.read(LENGTH_MAX + 1)
        version, _, *lines = content.decode().splitlines()
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{file} is no offset log of a Spark query: {error}") from error
    if version != "v1" or len(content) > LENGTH_MAX:
        raise ConfigurationError(
            f"{file} has format {version!r:.20}, and format 'v1' is read: write the positions with "
            "`eventproc checkpoints set`"
        )
    return [line for line in lines if line.strip() not in {"", _NO_OFFSET}]


def _parsed(line: str) -> Mapping[str, object]:
    try:
        found = read_json(line)
    except ValueError:
        return {}  # Of a source with another form, such as a number: not the one of the hub.
    return found if isinstance(found, dict) else {}


def _hub_in(found: Mapping[str, object]) -> str:
    name = found.get("hub") if "next" in found else next(iter(found), "")
    return f"{name!r:.200}" if name else ""


def _created_in(file: Path, found: Mapping[str, object]) -> datetime | None:
    """Return when the hub of our source's offset was created; ``None`` if it does not say."""
    if found.get("version") != 1:
        raise ConfigurationError(
            f"{file} has offsets of version {found.get('version')!r:.20}, and version 1 is read"
        )
    try:
        created = found.get("created")
        since = None if created is None else datetime.fromisoformat(str(created))
    except ValueError as error:
        raise ConfigurationError(f"{file}: {error}") from error
    return since if since is None or since.tzinfo else since.replace(tzinfo=UTC)
