"""Reads positions from blobs: records of the Azure SDKs, and leases of what came before them.

A partition whose record has no position is read from its lease, as each program does that moved
from leases to records.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from checkpointstores._fields import require_partition_id
from checkpointstores.blob import _layout as layout
from checkpointstores.blob._container import BlobItem, Listing
from checkpointstores.blob._layout import Position
from eventproc._base.logs import printable
from eventproc._base.tasks import in_parts
from eventproc._command.arguments.address import HubAddress
from eventproc._command.foreign.container import ForeignContainer, container_at
from eventproc._command.foreign.found import FoundGroup, FoundPosition
from eventproc._command.foreign.names import LeaseName
from eventproc._command.foreign.place import Place
from eventproc._command.group.view import in_order
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup

ALIVE_MAX: Final = timedelta(minutes=3)
"""An owner that renewed its record so lately may run: the longest default of an Azure SDK."""

_LEASE_BYTES_MAX: Final = 64 * 1024


async def read_blobs(
    place: Place, address: HubAddress, leases: Sequence[LeaseName], *, has_records: bool
) -> FoundGroup:
    """Read the positions of the group at a place.

    Raises:
        ConfigurationError: The account is not given.
        StoreError: The container cannot be read.
    """
    group, prefix = place.group(address.group()), place.settings.get("prefix", "")
    async with container_at(place, address) as container:
        listing = await container.list("")
        return await find_blobs(
            container, listing, group, leases, prefix=prefix, has_records=has_records
        )


async def find_blobs(
    container: ForeignContainer,
    listing: Listing,
    group: ConsumerGroup,
    leases: Sequence[LeaseName] = (),
    *,
    prefix: str = "",
    has_records: bool = True,
) -> FoundGroup:
    """Find the positions of the group in a container.

    Args:
        container: It is open.
        listing: All that it has.
        group: The group.
        leases: The forms of a lease's name; the first one that any blob has is the program's.
        prefix: What the names of leases begin with.
        has_records: Whether records of an Azure SDK count.

    Raises:
        StoreError: A lease cannot be read.
    """
    items = [item for item in listing.items if not item.is_folder]
    records, owners, notes = _Newest(), set[str](), list[str]()
    for item in items if has_records else ():
        _, kind, partition_id = layout.record_of(item.name, group) or ("", "", "")
        if kind == "checkpoint":
            records.add(partition_id, layout.position_in(item.metadata), item)
        elif kind == "ownership":
            owner_id, _ = layout.owner_in(item.metadata)
            if owner_id and listing.as_of - item.last_modified < ALIVE_MAX:
                owners.add(f"{printable(owner_id)} owns partition {printable(partition_id)}")
    held = _Newest()
    named = _lease_names(leases, items, group, prefix)

    async def read(found: tuple[str, str]) -> BlobItem | None:
        return await container.read(found[1], body_bytes_max=_LEASE_BYTES_MAX)

    for (partition_id, name), lease in zip(named, await in_parts(read, named), strict=True):
        if lease is None:
            continue
        held.add(partition_id, layout.legacy_position(lease.body), lease)
        if lease.is_leased:
            owners.add(f"a process holds the lease of blob {printable(name)}")
    found = held.by_partition | records.by_partition
    notes += [n for p, n in held.empty.items() if p not in found]
    notes += [*records.notes, *held.notes]
    notes += [n for p, n in records.empty.items() if p not in found]
    return FoundGroup(
        positions=[found[partition_id] for partition_id in in_order(found)],
        consumers=sorted(owners),
        notes=notes,
    )


def _lease_names(
    leases: Iterable[LeaseName], items: Iterable[BlobItem], group: ConsumerGroup, prefix: str
) -> list[tuple[str, str]]:
    names = [item.name for item in items]
    for lease_name in leases:
        found = [(p, n) for n in names if (p := lease_name(n, group, prefix)) is not None]
        if found:
            return found
    return []


class _Newest:
    """Positions by partition. Of two spellings of one name, the blob written last counts."""

    def __init__(self) -> None:
        self.by_partition: dict[str, FoundPosition] = {}
        self.notes: list[str] = []
        self.empty: dict[str, str] = {}
        """A note for each partition that has a blob without a position."""

    def add(self, partition_id: str, position: Position | None, item: BlobItem) -> None:
        """Note the position in a blob."""
        where = f"blob {printable(item.name)}"
        try:
            require_partition_id(partition_id)
        except ConfigurationError:
            self.notes.append(f"{where} is of no partition, and is left out")
            return
        if position is None or not position.is_usable:
            self.empty[partition_id] = f"{where} has no position, and is left out"
            return
        found = FoundPosition(
            partition_id=partition_id,
            offset=position.offset,
            sequence_number=position.sequence_number,
            where=where,
            known_since=item.last_modified,
        )
        known = self.by_partition.get(partition_id)
        if known is not None:
            found, older = sorted((known, found), key=_written_at, reverse=True)
            self.notes.append(
                f"partition {printable(partition_id)} has two checkpoints, under two spellings of "
                f"its names: {found.where} was written last and is taken, {older.where} is not. "
                "Programs that spell the names differently are two groups"
            )
        self.by_partition[partition_id] = found


def _written_at(found: FoundPosition) -> datetime:
    assert found.known_since is not None, "a blob has the time of its last write"
    return found.known_since
