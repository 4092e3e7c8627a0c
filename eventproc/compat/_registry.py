"""What the calls of one client are receiving: no partition is received twice."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock


class Registry:
    """The calls of a client that run, by partition id; ``None``: of all partitions."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._calls: dict[str | None, Callable[[], object]] = {}
        self._lock = Lock()

    @contextmanager
    def receiving(self, partition_id: str | None) -> Iterator[None]:
        """Note a call while the block runs.

        Raises:
            ValueError: another call receives the same partition.
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
            self._calls[partition_id] = lambda: None
        try:
            yield
        finally:
            with self._lock:
                del self._calls[partition_id]

    def note(self, partition_id: str | None, end: Callable[[], object]) -> None:
        """Note what ends the call."""
        with self._lock:
            self._calls[partition_id] = end

    def close(self) -> None:
        """Let every call end."""
        with self._lock:
            ends = list(self._calls.values())
        for end in ends:
            end()
