"""The two sides of each pair: Azure's clients, and those of ``eventproc.compat``."""

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import azure.eventhub
import azure.eventhub.aio
from azure.eventhub import EventData, EventHubProducerClient
from azure.eventhub.amqp import AmqpAnnotatedMessage
from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore as AzuresThreadsStore
from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore as AzuresStore
from azure.storage.blob import ContainerClient

import eventproc.compat.azure_eventhub
import eventproc.compat.azure_eventhub.aio
from eventproc.compat import BlobCheckpointStore
from eventproc.emulator import EventHubsEmulator

MODULES: dict[str, tuple[Any, Any, Any]] = {
    "azure": (azure.eventhub, azure.eventhub.aio, AzuresStore),
    "eventproc": (
        eventproc.compat.azure_eventhub,
        eventproc.compat.azure_eventhub.aio,
        BlobCheckpointStore,
    ),
}
SIDES = tuple(MODULES)


@dataclass
class Place:
    """One side's imports, a hub and a container of its own, and what its program observes."""

    side: str
    emulator: EventHubsEmulator
    hub: str
    storage: str
    container: str = field(default_factory=lambda: f"compat-{uuid.uuid4().hex[:16]}")
    seen: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.threads, self.aio, self._store = MODULES[self.side]

    @property
    def connection_string(self) -> str:
        return self.emulator.connection_string_for(self.hub)

    @property
    def options(self) -> dict[str, Any]:
        """What every client has: an interval for tests."""
        return {"load_balancing_interval": 1.5, "partition_ownership_expiration_interval": 10}

    def aio_client(self, **options: Any) -> Any:
        return self.aio.EventHubConsumerClient.from_connection_string(
            self.connection_string, "$Default", **self.options | options
        )

    def threads_client(self, **options: Any) -> Any:
        return self.threads.EventHubConsumerClient.from_connection_string(
            self.connection_string, "$Default", **self.options | options
        )

    def blob_store(self) -> Any:
        return self._in_container(self._store)

    def threads_blob_store(self, side: str = "") -> Any:
        """Return the store of a side for the client for threads; by default, of this one."""
        is_azures = (side or self.side) == "azure"
        return self._in_container(AzuresThreadsStore if is_azures else BlobCheckpointStore)

    def _in_container(self, store: Any) -> Any:
        with ContainerClient.from_connection_string(self.storage, self.container) as client:
            if not client.exists():
                client.create_container()
        return store.from_connection_string(self.storage, self.container)

    def publish(
        self, bodies: Sequence[str | EventData | AmqpAnnotatedMessage], *partition_ids: str
    ) -> None:
        """Publish the same events to each of these partitions; by default, to the first."""
        with EventHubProducerClient.from_connection_string(self.connection_string) as producer:
            for partition_id in partition_ids or ("0",):
                batch = producer.create_batch(partition_id=partition_id)
                for each in bodies:
                    batch.add(EventData(each) if isinstance(each, str) else each)
                producer.send_batch(batch)

    def blobs(self, kind: str) -> dict[str, dict[str, str]]:
        """Return the metadata of the records of a kind, without what only eventproc writes."""
        with ContainerClient.from_connection_string(self.storage, self.container) as client:
            return {
                blob.name.rpartition("/")[2]: {
                    key: value or ""
                    for key, value in (blob.metadata or {}).items()
                    if not key.startswith("eventproc")
                }
                for blob in client.list_blobs(include=["metadata"])
                if f"/{kind}/" in blob.name
            }


class OwnStore:
    """A program's own store, in memory: for either client, by ``AioOwnStore`` for aio."""

    def __init__(self) -> None:
        self.owned: dict[str, dict[str, Any]] = {}
        self.checkpoints: dict[str, dict[str, Any]] = {}
        self.options: list[Any] = []

    def list_ownership(self, namespace: str, hub: str, group: str) -> list[dict[str, Any]]:
        return [dict(each) for each in self.owned.values()]

    def claim_ownership(self, ownership_list: Any) -> list[dict[str, Any]]:
        claimed = []
        for wanted in ownership_list:
            found = self.owned.get(wanted["partition_id"])
            if found is None or found["etag"] == wanted.get("etag"):
                times = {"etag": uuid.uuid4().hex, "last_modified_time": time.time()}
                self.owned[wanted["partition_id"]] = dict(wanted) | times
                claimed.append(dict(self.owned[wanted["partition_id"]]))
        return claimed

    def update_checkpoint(self, checkpoint: Any, mark: str = "") -> None:
        self.checkpoints[checkpoint["partition_id"]] = dict(checkpoint)
        self.options.append(mark)

    def list_checkpoints(self, namespace: str, hub: str, group: str) -> list[dict[str, Any]]:
        return [dict(each) for each in self.checkpoints.values()]


class AioOwnStore:
    """The same with coroutines."""

    def __init__(self) -> None:
        self._store = OwnStore()
        self.owned, self.checkpoints = self._store.owned, self._store.checkpoints
        self.options = self._store.options

    async def list_ownership(self, *names: Any) -> Any:
        return self._store.list_ownership(*names)

    async def claim_ownership(self, ownership_list: Any) -> Any:
        return self._store.claim_ownership(ownership_list)

    async def update_checkpoint(self, checkpoint: Any, mark: str = "") -> None:
        self._store.update_checkpoint(checkpoint, mark)

    async def list_checkpoints(self, *names: Any) -> Any:
        return self._store.list_checkpoints(*names)
