"""What the clients of both modules have in common: their arguments, and the calls that run."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Lock
from typing import Any, Self, cast

from eventproc.compat._settings import ClientSettings
from eventproc.ports import CheckpointStore


class Consumer:
    """Takes the arguments of Azure's client, which is the next base class."""

    def __init__(
        self,
        fully_qualified_namespace: str,
        eventhub_name: str,
        consumer_group: str,
        credential: Any,  # noqa: ANN401 - any of Azure's
        **kwargs: Any,  # noqa: ANN401 - Azure's
    ) -> None:
        """Take the arguments of Azure's client; nothing connects.

        Raises:
            ConfigurationError: one cannot be kept; it is a ``ValueError``.
        """
        given = fully_qualified_namespace, eventhub_name, consumer_group, credential
        super().__init__(*given, **kwargs)  # type: ignore[call-arg]  # Azure's client
        self._settings = ClientSettings(*given, kwargs)
        store = kwargs.get("checkpoint_store")
        is_single = isinstance(store, CheckpointStore)
        self._registry = Registry(consumer_group, single_store=store if is_single else None)

    @classmethod
    def from_connection_string(
        cls,
        conn_str: str,
        consumer_group: str,
        **kwargs: Any,  # noqa: ANN401 - Azure's
    ) -> Self:
        """Build a client from a connection string; other arguments are those of Azure's client.

        Raises:
            ValueError: the string or an argument cannot work.
        """
        azures = super().from_connection_string  # type: ignore[misc]  # Azure's client
        return cast(Self, azures(conn_str, consumer_group, **kwargs))


class Registry:
    """The calls of a client that run, by partition id; ``None``: of all partitions."""

    def __init__(self, group: str, *, single_store: CheckpointStore | None = None) -> None:
        """Note no call yet; *single_store* is a store that only one call at a time can use."""
        self._group = group
        self._single_store = single_store
        self._calls: dict[str | None, Call] = {}
        self._lock = Lock()

    @contextmanager
    def receiving(self, partition_id: str | None) -> Iterator["Call"]:
        """Note a call while the block runs.

        Raises:
            ValueError: another call receives the same partition, or uses the only store.
        """
        with self._lock:
            where = ""
            if None in self._calls:
                where = " from all partitions"
            elif partition_id in self._calls:
                where = f" from partition {partition_id}"
            if where or (partition_id is None and self._calls):
                raise ValueError(
                    f"This consumer client is already receiving events{where} for consumer group "
                    f"{self._group}."
                )
            if self._calls and self._single_store is not None:
                raise ValueError(
                    f"Another call of this consumer client uses {self._single_store!r}, which "
                    "serves one call at a time: give each partition a client of its own, with a "
                    "store of its own that is built with the same arguments."
                )
            call = self._calls[partition_id] = Call()
        try:
            yield call
        finally:
            with self._lock:
                del self._calls[partition_id]
            call.ended.set_result(None)

    def close(self) -> Sequence[Future[None]]:
        """Let every call end; return what is done when they have ended."""
        with self._lock:
            calls = list(self._calls.values())
        for call in calls:
            call.close()
        return [call.ended for call in calls]


class Call:
    """A call of ``receive``, which may be closed while its processor is still being built."""

    def __init__(self) -> None:
        self.ended: Future[None] = Future()
        self._lock = Lock()
        self._is_closed = False
        self._end: Callable[[], object] = lambda: None

    def on_close(self, end: Callable[[], object]) -> None:
        """Have a function called at the close, or now if that was before."""
        with self._lock:
            self._end = end
            is_late = self._is_closed
        if is_late:
            end()

    def close(self) -> None:
        """Let the call end."""
        with self._lock:
            self._is_closed = True
            end = self._end
        end()
