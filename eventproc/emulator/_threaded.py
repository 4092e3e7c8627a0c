"""The emulator in a thread of its own: for tests, notebooks and programs without an event loop."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import ParamSpec, Self, TypeVar

from eventproc._base.threads import LoopThread
from eventproc.emulator._amqp.message import StoredEvent
from eventproc.emulator._faults import LastingFault
from eventproc.emulator._hub.configuration import (
    CaptureConfiguration,
    EmulatorConfiguration,
    HubConfiguration,
    hubs_of,
)
from eventproc.emulator._hub.log import Retention
from eventproc.emulator._server import EmulatorServer
from eventproc.emulator._tokens import TokenRules

P = ParamSpec("P")
T = TypeVar("T")


class EventHubsEmulator:
    """An Event Hubs endpoint on this machine, as a context manager.

    ``stop`` and ``start`` may alternate within it: the port and the events stay, every connection
    is cut. All methods may be called from any thread, and return when they have taken effect.

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
        hub_age: timedelta = timedelta(0),
        directory: Path | None = None,
        sync_to_disk: bool = False,
        certificate: Path | None = None,
        key: Path | None = None,
        websocket_port: int | None = None,
        tokens: TokenRules | None = None,
        capture: CaptureConfiguration | None = None,
    ) -> None:
        self.configuration = EmulatorConfiguration(
            hubs=hubs_of(hubs, consumer_groups),
            host=host,
            port=port,
            health_port=health_port,
            retention=retention or Retention(),
            hub_age=hub_age,
            directory=directory,
            sync_to_disk=sync_to_disk,
            certificate=certificate,
            key=key,
            websocket_port=websocket_port,
            tokens=tokens,
            capture=capture,
        )
        self._server: EmulatorServer | None = None
        self._thread: LoopThread | None = None

    def __enter__(self) -> Self:
        """Start."""
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop and release the files."""
        self.close()

    def open(self) -> None:
        """Start the thread and the server in it.

        Raises:
            ConfigurationError: The port is taken, or the directory has other files.
        """
        assert self._thread is None, "opened twice"
        self._thread = LoopThread("event-hubs-emulator")
        try:
            self._server = self._call(EmulatorServer, self.configuration)
            self._await(self._server.open())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop the server and its thread, and release the files. Repeating is harmless."""
        if self._thread is None:
            return
        if self._server is not None:
            self._await(self._server.close())
            self._server = None
        self._thread.close()
        self._thread = None

    def start(self) -> None:
        """Listen again, on the same port and with the same events, after ``stop``."""
        self._await(self._running.start())

    def stop(self) -> None:
        """Close the port and cut every connection. The events stay until ``start``."""
        self._await(self._running.stop())

    @property
    def _running(self) -> EmulatorServer:
        if self._server is None:
            raise RuntimeError("the emulator is not open: use it in a with statement")
        return self._server

    def _await(self, coroutine: Coroutine[object, object, T]) -> T:
        assert self._thread is not None
        return self._thread.call(coroutine)

    def _call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function on the loop's thread; return its result or raise its error."""

        async def call() -> T:
            return function(*args, **kwargs)

        return self._await(call())

    # --- addresses -------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._running.port

    @property
    def websocket_port(self) -> int | None:
        """The port for AMQP over WebSockets, if one is configured."""
        return self._running.websocket_port

    @property
    def health_port(self) -> int | None:
        """The port of ``GET /health`` and of the faults over HTTP, if one is configured."""
        return self._running.health_port

    @property
    def connection_string(self) -> str:
        """The connection string for clients of the Azure SDKs, without a hub."""
        return self._running.connection_string

    def connection_string_for(self, hub: str) -> str:
        """Return the connection string with the hub's name as ``EntityPath``."""
        return self._running.connection_string_for(hub)

    # --- content ---------------------------------------------------------------------------------

    def events(self, hub: str, partition_id: str) -> list[StoredEvent]:
        """Return the events of a partition, oldest first."""
        return self._call(self._running.events, hub, partition_id)

    def partition_ids(self, hub: str) -> list[str]:
        """Return the ids of a hub's partitions."""
        return self._call(self._running.partition_ids, hub)

    def receiver_count(self, hub: str, partition_id: str | None = None) -> int:
        """Return how many receivers read a hub, or one partition of it."""
        return self._call(self._running.receiver_count, hub, partition_id)

    def add_partitions(self, hub: str, count: int) -> None:
        """Add partitions to a hub. With a directory, configure the new count for the next start."""
        self._call(self._running.add_partitions, hub, count)

    def recreate_hub(self, hub: str) -> None:
        """Delete a hub, and create one of the same name and with as many partitions.

        Receivers are refused, events are gone, and sequence numbers begin at 0 again.
        """
        self._call(self._running.recreate_hub, hub)

    def expire_before(self, hub: str, partition_id: str, sequence_number: int) -> int:
        """Drop events below ``sequence_number``, as retention would; return how many."""
        return self._call(self._running.expire_before, hub, partition_id, sequence_number)

    # --- faults ----------------------------------------------------------------------------------

    def drop_connections(self, hub: str | None = None, partition_id: str | None = None) -> int:
        """Abort connections: all, or those with a link to a hub or partition; return how many."""
        return self._call(self._running.drop_connections, hub, partition_id)

    def displace_receivers(self, hub: str, partition_id: str | None = None) -> int:
        """End receivers as if others with a higher epoch had connected; return how many."""
        return self._call(self._running.displace_receivers, hub, partition_id)

    def delay_deliveries(
        self, delay: timedelta, hub: str | None = None, partition_id: str | None = None
    ) -> None:
        """Delay each delivery of one partition, of one hub, or of all. Zero ends it."""
        self._call(self._running.delay_deliveries, delay, hub, partition_id)

    def refuse_connections(self, duration: timedelta) -> None:
        """Abort every new connection as soon as it is made; existing ones stay."""
        self._call(self._running.faults.begin, LastingFault.REFUSE_CONNECTIONS, duration)

    def refuse_links(self, duration: timedelta) -> None:
        """Answer every new link to a hub with the service's ``server-busy``."""
        self._call(self._running.faults.begin, LastingFault.REFUSE_LINKS, duration)

    def refuse_offsets(self, duration: timedelta) -> None:
        """Refuse receivers that begin at an offset, as after geo-replication was switched on."""
        self._call(self._running.faults.begin, LastingFault.REFUSE_OFFSETS, duration)

    def be_busy(self, duration: timedelta) -> None:
        """Reject every event that is sent to a hub with the service's ``server-busy``."""
        self._call(self._running.faults.begin, LastingFault.BE_BUSY, duration)

    def fall_silent(self, duration: timedelta) -> None:
        """Keep connections open but send nothing on them; pending output follows afterwards."""
        self._call(self._running.faults.begin, LastingFault.FALL_SILENT, duration)

    def clear_faults(self) -> None:
        """End every fault; output that was held back or delayed is sent now."""
        self._call(self._running.clear_faults)
