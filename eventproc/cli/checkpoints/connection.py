"""What the verbs stand on: a group, its store, and its hub if one was named."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from eventproc.cli.group_name import group_of
from eventproc.cli.group_view import in_order
from eventproc.cli.sources import make_source
from eventproc.cli.stores import open_store
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup
from eventproc.ports import CheckpointStore, EventSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A group within reach."""

    group: ConsumerGroup
    store: CheckpointStore
    source: EventSource | None
    """``None`` where no connection string was given."""

    async def partition_ids(self, wanted: Sequence[str], known: Sequence[str]) -> list[str]:
        """Return the partitions that were asked for, all by default.

        Args:
            wanted: From the command line.
            known: Those with a checkpoint, for where the hub cannot be asked.

        Raises:
            ConfigurationError: There is no such partition.
        """
        ids = set(known if self.source is None else await self.source.partition_ids())
        strange = [partition_id for partition_id in wanted if partition_id not in ids]
        if strange:
            raise ConfigurationError(
                f"--partition {strange[0]}: there is no such partition; there are "
                f"{', '.join(in_order(ids)) or 'none'}"
            )
        return in_order(wanted or ids)


@dataclass(frozen=True, slots=True)
class Place:
    """How to reach a group, as it was given on the command line."""

    store: str
    eventhub: str
    consumer_group: str
    connection_string: str
    namespace: str
    storage_connection_string: str

    def group(self) -> ConsumerGroup:
        """Name the group; nothing is connected."""
        return group_of(self._source(), self.namespace, self.eventhub, self.consumer_group)

    def _source(self) -> EventSource | None:
        if not self.connection_string:
            return None
        return make_source(self.connection_string, self.eventhub)

    @asynccontextmanager
    async def open(self, *, creates_store: bool = False) -> AsyncIterator[Connection]:
        """Connect for as long as the block lasts.

        Raises:
            ConfigurationError: Something given cannot work.
            StoreUnavailableError: the store did not answer.
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
