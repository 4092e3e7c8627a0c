"""Connect to a group: its store, and its hub unless it is not to be asked."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass

from eventproc.cli.arguments.address import HubAddress
from eventproc.cli.group.view import in_order
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup
from eventproc.ports import CheckpointStore, EventSource

NO_POSITIONS = (
    "partition queues have no positions to move or to compare: the broker keeps what is done. To "
    "skip messages, purge their queue (`rabbitmqctl purge_queue NAME`); to handle messages again, "
    "publish them again. `eventproc status` shows how many messages wait"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A group with its open store and source."""

    group: ConsumerGroup
    store: CheckpointStore
    source: EventSource | None
    """``None`` if the hub is not asked."""

    def refuse_queues(self) -> None:
        """Refuse a source whose service keeps the position.

        Raises:
            ConfigurationError: It is one; the message has the remedy.
        """
        if self.source is not None and self.source.unsettled_max is not None:
            raise ConfigurationError(NO_POSITIONS)

    async def check_hub(self) -> None:
        """Check that the hub and its consumer group exist, if the hub is asked.

        Raises:
            ConfigurationError: One of them does not exist, or may not be read.
            SourceRejectedError: There is no such queue.
            SourceUnavailableError: No answer.
        """
        if self.source is None:
            return
        if self.source.unsettled_max is None:
            await self.source.check_consumer_group(self.group.name)
        else:  # The check of a processor would create queues that do not exist.
            await self.source.partition_properties((await self.source.partition_ids())[0])

    async def require_records(self, remedy: str = "") -> None:
        """Refuse a group that has no records in the store, as one with a mistyped name.

        Raises:
            ConfigurationError: It has none; *remedy* is appended.
        """
        present = await self.store.list_members(self.group)
        if (
            present.members
            or present.record_etags
            or (await self.store.list_ownership(self.group)).ownerships
            or await self.store.list_checkpoints(self.group)
        ):
            return
        raise ConfigurationError(
            f"no process of consumer group {self.group.name!r} of event hub "
            f"{self.group.eventhub_name!r} at {self.group.fully_qualified_namespace} has ever run "
            f"with this store: check --eventhub, --consumer-group, --namespace and --store{remedy}"
        )

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


@asynccontextmanager
async def connect(address: HubAddress, *, creates_store: bool = False) -> AsyncIterator[Connection]:
    """Connect to a group for as long as the block lasts.

    Raises:
        ConfigurationError: An option is missing or invalid.
        StoreUnavailableError: The store did not answer.
    """
    group, source = address.group(), address.source()
    store = address.checkpoint_store(must_exist=not creates_store)
    async with store, source or nullcontext():
        yield Connection(group=group, store=store, source=source)
