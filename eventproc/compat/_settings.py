"""The arguments of Azure's client as the settings of a source, a store and a processor."""

import asyncio
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.eventhub import TransportType

from checkpointstores.memory import MemoryCheckpointStore
from eventproc._base.network import HttpProxy
from eventproc._base.retries import Backoff
from eventproc._delivery.config import (
    CheckpointPolicy,
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
)
from eventproc.compat._blob_store import BlobCheckpointStore
from eventproc.compat._errors import WrongPartitionError
from eventproc.compat._handler import FIRST_PAUSE_S, PAUSE_MAX_S
from eventproc.compat._receive import Receive
from eventproc.compat._user_store import METHODS, OwnedAlone, UserStore
from eventproc.errors import ConfigurationError, SourceRejectedError
from eventproc.models import ConsumerGroup, LoadBalancingStrategy
from eventproc.ports import CheckpointStore
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource, ReceivePath, Transport
from eventproc.sources.eventhubs._options import PREFETCH_MAX

INTERVAL_S: Final = 30.0
EXPIRATION_INTERVALS: Final = 6
"""Azure's defaults."""

_SAS_TOKEN: Final = b"servicebus.windows.net:sastoken"

_VENDORS_STORES: Final = "azure.eventhub.extensions.checkpointstoreblob"


class HubSource(EventHubSource):
    """A hub of which all partitions are read, or only one."""

    only: str | None = None

    async def partition_ids(self) -> Sequence[str]:
        found = await super().partition_ids()
        if self.only is None:
            return found
        if self.only not in found:
            wrong = WrongPartitionError(
                f"Wrong partition id:{self.only}. The eventhub has partitions: {list(found)}."
            )
            raise SourceRejectedError(str(wrong)) from wrong
        return [self.only]


class ClientSettings:
    """The arguments of a client, checked when it is built."""

    def __init__(
        self,
        namespace: str,
        eventhub_name: str,
        consumer_group: str,
        credential: Any,  # noqa: ANN401 - any of Azure's
        arguments: Mapping[str, Any],
    ) -> None:
        """Take the arguments of a client's constructor.

        Raises:
            ConfigurationError: one cannot be kept; it is a ``ValueError``.
        """
        get = arguments.get
        if get("uamqp_transport"):
            raise ConfigurationError(
                "the transport of uamqp is not supported here, and Azure ends it with 5.16: leave "
                "it out",
                setting="uamqp_transport",
            )
        self.group = ConsumerGroup(
            fully_qualified_namespace=namespace, eventhub_name=eventhub_name, name=consumer_group
        )
        self._credential = _credential(credential)
        self._store = get("checkpoint_store")
        self._check_store()
        self.interval_s = float(get("load_balancing_interval") or INTERVAL_S)
        self._expiration_s = float(
            get("partition_ownership_expiration_interval") or EXPIRATION_INTERVALS * self.interval_s
        )
        self._options = _options(arguments)
        if self._options.receive_path is ReceivePath.PUBLIC:
            raise ConfigurationError(
                "the drop-in gives events as Azure's class, which needs their encoded messages: "
                "unset the variable",
                setting="EVENTPROC_RECEIVE_PATH",
                value="public",
            )

    def _check_store(self) -> None:
        store = self._store
        if store is None or isinstance(store, BlobCheckpointStore | CheckpointStore):
            return
        missing = [name for name in METHODS if not callable(getattr(store, name, None))]
        if missing:
            raise ConfigurationError(
                f"it has no method {missing[0]}: give eventproc.compat.BlobCheckpointStore, a "
                "store of checkpointstores, or an object with Azure's four methods",
                setting="checkpoint_store",
                value=repr(store),
            )
        if type(store).__module__.startswith(_VENDORS_STORES):
            warnings.warn(
                "Azure's BlobCheckpointStore balances by ownership alone. Import "
                "BlobCheckpointStore from eventproc.compat for hand-overs and checked "
                "checkpoints in the same blobs",
                stacklevel=4,
            )

    def source(self, receive: Receive) -> EventHubSource:
        """Return a source for one call of ``receive``."""
        level = receive.owner_level
        if level is None and self._store is not None:
            level = 0
        options = replace(
            self._options,
            prefetch=min(receive.prefetch, PREFETCH_MAX) if receive.prefetch else None,
            tracks_last_enqueued=receive.tracks_last_enqueued,
            is_exclusive=level is not None,
            owner_level=level or 0,
        )
        names = self.group.fully_qualified_namespace, self.group.eventhub_name
        source = HubSource(*names, self._credential, options=options)
        source.only = receive.partition_id
        return source

    def store(self, receive: Receive, home: asyncio.AbstractEventLoop | None) -> CheckpointStore:
        """Return a store for one call of ``receive``; *home*: see ``UserStore``."""
        given = self._store
        store: CheckpointStore
        if given is None:
            return MemoryCheckpointStore()
        if isinstance(given, BlobCheckpointStore):
            store = given.new_store()
        elif isinstance(given, CheckpointStore):
            store = given
        else:
            store = UserStore(given, home)
        return store if receive.partition_id is None else OwnedAlone(store)

    def config(self, receive: Receive) -> EventProcessorConfig:
        """Return the settings of the processor for one call of ``receive``."""
        is_users = not isinstance(self._store, BlobCheckpointStore | CheckpointStore | None)
        strategy = LoadBalancingStrategy.GREEDY if is_users else LoadBalancingStrategy.COOPERATIVE
        wait_s = receive.max_wait_time or 0
        wait = timedelta(seconds=wait_s) if wait_s > 0 else None
        interval_s = min(self.interval_s, self._expiration_s / 3)
        return EventProcessorConfig(
            initial_position=receive.positions.default,
            initial_positions=receive.positions.by_partition,
            checkpoint_policy=CheckpointPolicy.manual(),
            failure_policy=FailurePolicy(attempts_max=1, action=FailureAction.STOP),
            batch_size_max=receive.batch_size_max,
            batch_wait=wait if receive.collects else None,
            idle_timeout=wait,
            load_balancing_strategy=strategy,
            load_balancing_interval=timedelta(seconds=interval_s),
            rebalance_interval=timedelta(seconds=min(0.25, interval_s)),
            ownership_expiration=timedelta(seconds=self._expiration_s),
            handler_backoff=Backoff(
                initial=timedelta(seconds=FIRST_PAUSE_S), maximum=timedelta(seconds=PAUSE_MAX_S)
            ),
        )


def _options(arguments: Mapping[str, Any]) -> EventHubOptions:
    get = arguments.get
    timeout_s, endpoint, proxy = (
        get("auth_timeout"),
        get("custom_endpoint_address"),
        get("http_proxy"),
    )
    transport = get("transport_type")
    if transport is None and (endpoint or proxy):
        transport = TransportType.AmqpOverWebsocket
    is_socket = transport == TransportType.AmqpOverWebsocket
    context = get("ssl_context")
    return EventHubOptions(
        transport=Transport.WEBSOCKET if is_socket else Transport.AMQP,
        connect_timeout=timedelta(seconds=timeout_s or 60),
        custom_endpoint=endpoint,
        http_proxy=_proxy(proxy) if proxy else None,
        ca_bundle=None if context else get("connection_verify"),
        ssl_context=context,
        is_tls_on=get("use_tls", True),
        user_agent=get("user_agent"),
        is_wire_logged=bool(get("logging_enable")),
    )


def _proxy(given: Mapping[str, Any]) -> HttpProxy:
    host = str(given["proxy_hostname"]).rpartition("//")[2]
    return HttpProxy(
        host=host,
        port=int(given["proxy_port"]),
        username=given.get("username"),
        password=given.get("password"),
    )


def _credential(given: Any) -> Any:  # noqa: ANN401 - any of Azure's
    """Return a credential as the source takes it: keys and signatures without Azure's wrappers."""
    if getattr(given, "token_type", None) != _SAS_TOKEN:
        return given
    if hasattr(given, "policy") and hasattr(given, "key"):
        return AzureNamedKeyCredential(given.policy, given.key)
    if isinstance(getattr(given, "token", None), str):
        return AzureSasCredential(given.token)
    raise ConfigurationError(
        "a credential that makes its own SAS tokens is not supported: give "
        "AzureNamedKeyCredential, AzureSasCredential or a credential of azure.identity",
        setting="credential",
        value=type(given).__name__,
    )
