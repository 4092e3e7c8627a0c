"""Connect to a group: its store, and its hub if a connection string is given."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from eventproc.cli.arguments.group_name import group_of
from eventproc.cli.arguments.sources import make_source
from eventproc.cli.arguments.stores import open_store
from eventproc.cli.group.view import in_order
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup
from eventproc.ports import CheckpointStore, EventSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A group with its open store and source."""

    group: ConsumerGroup
    store: CheckpointStore
    source: EventSource | None
    """``None`` if no connection string was given."""

    async def partition_ids(self, wanted: Sequence[str], known: Sequence[str]) -> list[str]:
        """Return the wanted partitions in order, or all of them if *wanted* is empty.

        Args:
            wanted: Partition ids from the command line.
            known: Partitions with a checkpoint; used if there is no source to ask.

        Raises:
            ConfigurationError: A wanted partition does not exist.
        """
        ids = set(known if self.source is None else await self.source.partition_ids())
        unknown = [partition_id for partition_id in wanted if partition_id not in ids]
        if unknown:
            raise ConfigurationError(
                f"--partition {unknown[0]}: there is no such partition; there are "
                f"{', '.join(in_order(ids)) or 'none'}"
            )
        return in_order(wanted or ids)


@dataclass(frozen=True, slots=True)
class GroupAddress:
    """The options of the command line that name a group, its store and its hub."""

    store: str
    eventhub: str
    consumer_group: str
    connection_string: str
    namespace: str
    storage_connection_string: str

    def group(self) -> ConsumerGroup:
        """Return the group, without connecting to anything."""
        return group_of(self._source(), self.namespace, self.eventhub, self.consumer_group)

    def _source(self) -> EventSource | None:
        if not self.connection_string:
            return None
        return make_source(self.connection_string, self.eventhub)

    @asynccontextmanager
    async def open(self, *, creates_store: bool = False) -> AsyncIterator[Connection]:
        """Connect for as long as the block lasts.

        Raises:
            ConfigurationError: An option is missing or invalid.
            StoreUnavailableError: The store did not answer.
        """
        source = self._source()
        group = self.group()
        store = open_store(
            self.store,
            storage_connection_string=self.storage_connection_string,
            must_exist=not creates_store,
        )
        async with store:
            if source is None:
                yield Connection(group=group, store=store, source=None)
                return
            async with source:
                yield Connection(group=group, store=store, source=source)
