"""The emulator in a thread of its own: for tests, notebooks and programs without an event loop."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path
from typing import ParamSpec, Self, TypeVar

from eventproc.emulator.configuration import (
    EmulatorConfiguration,
    HubConfiguration,
    hubs_of,
)
from eventproc.emulator.log import Retention
from eventproc.emulator.message import StoredEvent
from eventproc.emulator.server import EmulatorServer

P = ParamSpec("P")
T = TypeVar("T")


class EventHubsEmulator:
    """An Event Hubs endpoint on this machine, as a context manager.

    ``stop`` and ``start`` may alternate within it: the port and the events stay, every connection
    is cut. All methods may be called from any thread and return when their effect is there.

    ```python
    with EventHubsEmulator({"orders": 8}) as emulator:
        producer = EventHubProducerClient.from_connection_string(
            emulator.connection_string_for("orders")
        )
    ```
    """

    def __init__(
        self,
        hubs: Mapping[str, int] | Iterable[HubConfiguration],
        *,
        consumer_groups: Iterable[str] = (),
        host: str = "127.0.0.1",
        port: int = 0,
        health_port: int | None = None,
        retention: Retention | None = None,
        directory: Path | None = None,
        sync_to_disk: bool = False,
    ) -> None:
        self.configuration = EmulatorConfiguration(
            hubs=hubs_of(hubs, consumer_groups),
            host=host,
            port=port,
            health_port=health_port,
            retention=retention or Retention(),
            directory=directory,
            sync_to_disk=sync_to_disk,
        )
        self._server: EmulatorServer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start."""
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop for good, and let go of the files."""
        self.close()

    def open(self) -> None:
        """Start the thread and the server in it.

        Raises:
            ConfigurationError: The port is taken, or the directory holds something else.
        """
        assert self._thread is None, "opened twice"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="event-hubs-emulator", daemon=True
        )
        self._thread.start()
        try:
            self._server = self._call(EmulatorServer, self.configuration)
            self._await(self._server.open())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop the server and its thread, and let go of the files. Again does no harm."""
        if self._thread is None or self._loop is None:
            return
        if self._server is not None:
            self._await(self._server.close())
            self._server = None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._thread = self._loop = None

    def start(self) -> None:
        """Listen again, on the same port and with the same events, after ``stop``."""
        self._await(self._running.start())

    def stop(self) -> None:
        """Close the port and cut every connection. The events stay; ``start`` brings them back."""
        self._await(self._running.stop())

    @property
    def _running(self) -> EmulatorServer:
        if self._server is None:
            raise RuntimeError("the emulator is not open: use it in a with statement")
        return self._server

    def _await(self, coroutine: Coroutine[object, object, T]) -> T:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function on the loop's thread and hand back what it returns or raises."""
        done: Future[T] = Future()

        def call() -> None:
            try:
                done.set_result(function(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001  # raised again where it was asked for
                done.set_exception(error)

        assert self._loop is not None
        self._loop.call_soon_threadsafe(call)
        return done.result()

    # --- how to reach it -------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._running.port

    @property
    def health_port(self) -> int | None:
        """The port of ``GET /health`` and of the faults over HTTP, if one was asked for."""
        return self._running.health_port

    @property
    def connection_string(self) -> str:
        """What a client of the Azure SDKs connects with, for any hub."""
        return self._running.connection_string

    def connection_string_for(self, hub: str) -> str:
        """The same, with the hub named in it."""
        return self._running.connection_string_for(hub)

    # --- what is in it ---------------------------------------------------------------------------

    def events(self, hub: str, partition_id: str) -> list[StoredEvent]:
        """What a partition holds, oldest first."""
        return self._call(self._running.events, hub, partition_id)

    def partition_ids(self, hub: str) -> list[str]:
        """The partitions that a hub has now."""
        return self._call(self._running.partition_ids, hub)

    def receiver_count(self, hub: str, partition_id: str | None = None) -> int:
        """How many receivers read a hub, or one partition of it."""
        return len(self._call(self._running.receivers, hub, partition_id))

    def add_partitions(self, hub: str, count: int) -> None:
        """Let a hub grow. With a directory, configure as many from the next start on."""
        self._call(self._running.add_partitions, hub, count)

    def expire_before(self, hub: str, partition_id: str, sequence_number: int) -> int:
        """Drop a partition's events below ``sequence_number``, as retention would; how many."""
        return self._call(self._running.expire_before, hub, partition_id, sequence_number)

    # --- faults ----------------------------------------------------------------------------------

    def drop_connections(self, hub: str | None = None, partition_id: str | None = None) -> int:
        """Cut connections without a word: all, or those with a link to a hub or partition."""
        return self._call(self._running.drop_connections, hub, partition_id)

    def displace_receivers(self, hub: str, partition_id: str | None = None) -> int:
        """End receivers as if others with a higher epoch had come; how many."""
        return self._call(self._running.displace_receivers, hub, partition_id)

    def delay_deliveries(
        self, delay: timedelta, hub: str | None = None, partition_id: str | None = None
    ) -> None:
        """Let each delivery wait: of one partition, of one hub, or all. Zero ends it."""
        self._call(self._running.faults.delay_deliveries, delay, hub, partition_id)

    def refuse_connections(self, duration: timedelta) -> None:
        """Drop every new connection as soon as it is made; those that are stay."""
        self._call(self._running.faults.refuse_connections, duration)

    def refuse_links(self, duration: timedelta) -> None:
        """Answer every new link to a hub with the service's ``server-busy``."""
        self._call(self._running.faults.refuse_links, duration)

    def be_busy(self, duration: timedelta) -> None:
        """Answer everything that is sent to a hub with the service's ``server-busy``."""
        self._call(self._running.faults.be_busy, duration)

    def fall_silent(self, duration: timedelta) -> None:
        """Keep every connection open and send nothing; what was due follows afterwards."""
        self._call(self._running.faults.fall_silent, duration)

    def clear_faults(self) -> None:
        """Behave again: what was held back or delayed goes out now."""
        self._call(self._running.clear_faults)
