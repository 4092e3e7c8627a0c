"""Reads a group for the page: the records of the store, and the ends of the hub's partitions.

The cost of a reading is three listings of the store (a group of up to 5,000 partitions: three
requests at blob storage), a request for each checkpoint that has to be looked into, once for each
version of it, and one for a published plan. The hub is asked for at most ``ENDS_MAX`` partitions,
in turn.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from eventproc._base.tasks import together
from eventproc._command.group.connection import Connection
from eventproc._command.group.readings import Readings, read_group
from eventproc._command.group.view import view_of
from eventproc._core.watching.group import WatchedGroup, WatchedPartition
from eventproc.errors import SourceError, StoreCorruptError
from eventproc.models import Checkpoint, PartitionProperties
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

        self.new_ids: Collection[str] = ()
        """The partitions that answered the newest request."""

    @property
    def created_at(self) -> datetime | None:
        """When the hub was created, if it says so."""
        return self._source.created_at

    async def ask(self, now_s: float) -> None:
        """Ask for the next partitions in turn.

        Raises:
            SourceError: The hub did not answer, or refuses.
        """
        self.new_ids = ()
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
        self.new_ids = asked


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
            readings = replace(
                readings,
                ends=dict(self._ends.by_id),
                old_ends=self._ends.by_id.keys() - self._ends.new_ids,
                hub_created_at=self._ends.created_at,
            )
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
        etags = {c.partition_id: c.etag for c in readings.checkpoints}
        return WatchedGroup(
            at_s=at_s,
            partitions=tuple(
                self._partition(p, self._whole.get((p.partition_id, etags.get(p.partition_id, ""))))
                for p in view.partitions
            ),
            members=(*view.members, *view.dead),
        )

    def _partition(self, p: WatchedPartition, whole: Checkpoint | None) -> WatchedPartition:
        """Add what only the whole checkpoint says, and when the hub was asked."""
        if whole is not None:
            count = sum(done.last - done.first + 1 for done in whole.completed)
            p = replace(p, isolation=whole.isolation, done_above_count=count)
        if self._ends is None or p.end is None or self.hub_failure is not None:
            return replace(p, end=None)
        return replace(p, end=replace(p.end, at_s=self._ends.at_s[p.partition_id]))
