"""Reads a group for the page: the records of the store, and the ends of the hub's partitions.

The cost of a reading is three listings of the store (a group of up to 5,000 partitions: three
requests at blob storage), a request for each checkpoint that has to be looked into, once for each
version of it, and one for a schema. The hub is asked for at most ``ENDS_MAX`` partitions, in turn.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from eventproc._base.tasks import together
from eventproc._command.group.connection import Connection
from eventproc._command.group.readings import Readings, read_group
from eventproc._command.group.view import MemberRow, PartitionRow, view_of
from eventproc._core.delivery.checkpoints import is_moved_by_operator
from eventproc._core.watching.group import HubEnd, WatchedGroup, WatchedMember, WatchedPartition
from eventproc._group.resources.names import name_of
from eventproc.errors import SourceError, StoreCorruptError
from eventproc.models import NOT_BEGUN, Checkpoint, Member, PartitionProperties
from eventproc.ports import EventSource

ENDS_MAX: Final = 100
"""The most partitions that the hub is asked for in one reading."""

PARTITION_IDS_SPAN_S: Final = 30.0
"""How old the list of the hub's partitions may be."""

WHOLE_MAX: Final = 16
"""The most checkpoints that are looked into in one reading."""


class HubEnds:
    """The newest answer of the hub for each partition."""

    def __init__(self, source: EventSource) -> None:
        self._source = source
        self._ids: list[str] = []
        self._ids_at_s = float("-inf")
        self._turn = 0
        self.by_id: dict[str, PartitionProperties] = {}
        self.at_s: dict[str, float] = {}
        """When each partition was asked for."""

    async def ask(self, now_s: float) -> None:
        """Ask for the next partitions in turn.

        Raises:
            SourceError: The hub did not answer, or refuses.
        """
        if now_s - self._ids_at_s >= PARTITION_IDS_SPAN_S:
            self._ids = list(await self._source.partition_ids())
            self._ids_at_s = now_s
        if len(self._ids) <= ENDS_MAX:
            asked = self._ids
        else:
            doubled = [*self._ids, *self._ids]
            asked = doubled[self._turn : self._turn + ENDS_MAX]
            self._turn = (self._turn + ENDS_MAX) % len(self._ids)
        for found in await together(*(self._source.partition_properties(p) for p in asked)):
            self.by_id[found.partition_id] = found
            self.at_s[found.partition_id] = now_s


class GroupReader:
    """Reads a group again and again; keeps what need not be read twice."""

    def __init__(
        self, connection: Connection, *, expiration: timedelta, clock: Callable[[], float]
    ) -> None:
        """Give an open connection, and a clock of monotonic seconds."""
        self.connection = connection
        self._expiration = expiration
        self._clock = clock
        self._ends = None if connection.source is None else HubEnds(connection.source)
        self._set_s: float | None = None
        self._errors: dict[tuple[str, str], str | None] = {}
        self._whole: dict[tuple[str, str], Checkpoint] = {}
        self.hub_failure: SourceError | None = None
        """Why the hub gave no answer in the newest reading."""

    async def read(self, unexplained: Collection[str]) -> WatchedGroup:
        """Read the group once.

        Args:
            unexplained: Partitions of which the whole checkpoint is wanted.

        Raises:
            StoreError: The store did not answer, or refuses.
        """
        group = self.connection.group
        readings = await read_group(self.connection.store, group, None, self._errors)
        if self._set_s is None:
            self._set_s = readings.owned.as_of.timestamp() - self._clock()
        at_s = self._clock() + self._set_s
        await self._ask_hub(at_s)
        if self._ends is not None:
            readings = replace(readings, ends=dict(self._ends.by_id))
        await self._look_into(readings, unexplained)
        return self._watched(readings, at_s)

    async def _ask_hub(self, at_s: float) -> None:
        if self._ends is None:
            return
        try:
            await self._ends.ask(at_s)
        except SourceError as error:
            self.hub_failure = error
        else:
            self.hub_failure = None

    async def _look_into(self, readings: Readings, unexplained: Collection[str]) -> None:
        versions = {(c.partition_id, c.etag) for c in readings.checkpoints}
        self._whole = {v: found for v, found in self._whole.items() if v in versions}
        wanted = [v for v in versions if v[0] in unexplained and v not in self._whole]

        async def look(version: tuple[str, str]) -> None:
            store, group = self.connection.store, self.connection.group
            try:
                found = await store.read_checkpoint(group, version[0])
            except StoreCorruptError:
                return  # The view says so.
            if found is not None:
                # The state may be large, and nothing of it is shown.
                self._whole[version] = replace(found, state=None)

        await together(*map(look, sorted(wanted)[:WHOLE_MAX]))

    # From records to what is watched.

    def _watched(self, readings: Readings, at_s: float) -> WatchedGroup:
        view = view_of(self.connection.group, readings, expiration=self._expiration)
        checkpoints = {c.partition_id: c for c in readings.checkpoints}
        partitions = tuple(
            self._partition(row, checkpoints.get(row.partition_id), at_s, view.as_of)
            for row in view.partitions
        )
        return WatchedGroup(
            at_s=at_s,
            partitions=partitions,
            members=_members(readings, view.members, partitions),
        )

    def _partition(
        self, row: PartitionRow, checkpoint: Checkpoint | None, at_s: float, now: datetime
    ) -> WatchedPartition:
        has_names = self.connection.group.is_of_resources
        whole = (
            None
            if checkpoint is None
            else self._whole.get((checkpoint.partition_id, checkpoint.etag))
        )
        return WatchedPartition(
            partition_id=row.partition_id,
            name=name_of(row.partition_id) if has_names else row.partition_id,
            owner_id=row.owner_id,
            is_expired=row.is_expired,
            renewed_ago_s=_seconds(row.record_age),
            position=row.sequence_number,
            written_ago_s=_seconds(row.checkpoint_age),
            is_moved_by_operator=checkpoint is not None and is_moved_by_operator(checkpoint),
            error=row.checkpoint_error,
            pause=row.pause,
            isolation=NOT_BEGUN if whole is None else whole.isolation,
            done_above_count=0
            if whole is None
            else sum(done.last - done.first + 1 for done in whole.completed),
            end=self._end(row, at_s, now),
        )

    def _end(self, row: PartitionRow, at_s: float, now: datetime) -> HubEnd | None:
        if self._ends is None or row.lag is None or self.hub_failure is not None:
            return None
        found = self._ends.by_id[row.partition_id]
        newest = found.last_enqueued_time
        return HubEnd(
            at_s=self._ends.at_s.get(row.partition_id, at_s),
            last=found.last_enqueued_sequence_number,
            lag=row.lag,
            newest_ago_s=None if newest is None else max(0.0, (now - newest).total_seconds()),
        )


def _members(
    readings: Readings, live: Collection[MemberRow], partitions: Collection[WatchedPartition]
) -> tuple[WatchedMember, ...]:
    """Return the live members, and the owners that did not renew in time."""
    records = {member.owner_id: member for member in readings.present.members}
    heard = {
        owner_id: (readings.present.as_of - record.last_modified).total_seconds()
        for owner_id, record in records.items()
        if record.last_modified is not None
    }
    for p in partitions:
        if p.owner_id is not None and p.renewed_ago_s is not None:
            heard[p.owner_id] = min(p.renewed_ago_s, heard.get(p.owner_id, p.renewed_ago_s))
    live_ids = {row.owner_id for row in live}
    owners = {p.owner_id for p in partitions if p.owner_id is not None}
    return tuple(
        _member(owner_id, records.get(owner_id), owner_id in live_ids, heard.get(owner_id))
        for owner_id in sorted(live_ids | owners)
    )


def _member(
    owner_id: str, record: Member | None, is_live: bool, silent_s: float | None
) -> WatchedMember:
    silent_s = None if silent_s is None else max(0.0, silent_s)
    if record is None:
        return WatchedMember(
            owner_id=owner_id,
            is_live=is_live,
            has_record=False,
            hands_over=False,
            silent_s=silent_s,
        )
    return WatchedMember(
        owner_id=owner_id,
        is_live=is_live,
        incarnation=record.incarnation,
        status=record.status,
        hands_over=record.hands_over,
        silent_s=silent_s,
        placement=record.placement,
        version=record.version,
    )


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()
