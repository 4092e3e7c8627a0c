"""Starts and stops Apache Kafka from Python.

Rule 1: the broker ends with the program that started it, even if that is killed.
Rule 2: nothing is installed here. If the broker is missing, the error names the command to get it.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from eventproc.errors import ConfigurationError
from eventproc.testing._azurite import ChildServer
from tests.servers.ports import free_port, listens, wait_for_end

_START_MAX_S: Final = 90.0

_CHECKOUT: Final = Path(__file__).resolve().parents[2]
_FETCHED: Final = _CHECKOUT / ".tools/kafka"
_JAVA: Final = _CHECKOUT / ".tools/java/bin/java"

_GUARDED: Final = """\
exec 3<&0 </dev/null
"$@" >>output 2>&1 3<&- &
server=$!
echo $server
exec >/dev/null 2>&1
{ cat <&3 >/dev/null; kill -9 $server; } &
wait $server
"""
"""Shell commands: run a program, and kill it when standard input ends, as when the parent ends."""

_JAVA_OPTIONS: Final = (
    # A quick start and little memory; more would be compiled only for long runs.
    *("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    *("-Xshare:auto", "-XX:-UsePerfData"),
)

_SETTINGS: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "INTERNAL",
    "log.dirs": "data",
    # There is one broker.
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # A misspelt name creates no topic.
    "auto.create.topics.enable": "false",
    # After a kill it registers when its former session has ended.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # Retention and compaction soon follow what a topic's settings say.
    "log.initial.task.delay.ms": "0",
    "log.retention.check.interval.ms": "300",
    "log.cleaner.backoff.ms": "300",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.segment.delete.delay.ms": "0",
}


def find_kafka() -> str:
    """Return the class path of the broker.

    Raises:
        ConfigurationError: It is not installed; the message says how to get it.
    """
    if not (_FETCHED / ".done").exists():
        raise ConfigurationError(
            "Apache Kafka is not installed. In a checkout of eventproc: `make kafka`."
        )
    return str(_FETCHED / "jars/*")


class KafkaBroker(ChildServer):
    """One Kafka broker on loopback, which is its own controller (KRaft).

    Use it as a context manager, or call ``start`` and ``stop``. A start takes about two seconds;
    inside a running event loop call ``await asyncio.to_thread(broker.start)``. Ports and data are
    kept over ``stop``, ``kill`` and ``start``, until ``remove``.

    Args:
        settings: Server settings, by name.
        protocol: What clients speak: ``PLAINTEXT``, ``SSL``, ``SASL_PLAINTEXT`` or ``SASL_SSL``;
            ``settings`` has certificates and users.
        advertised: The ``host:port`` that it tells clients to connect to, instead of its own: of a
            proxy in front of it.
    """

    def __init__(
        self,
        *,
        settings: Mapping[str, str] | None = None,
        protocol: str = "PLAINTEXT",
        advertised: str | None = None,
    ) -> None:
        super().__init__()
        self._settings = {**_SETTINGS, **(settings or {})}
        self._protocol = protocol
        self._advertised = advertised
        self._folder: Path | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Where it listens, as every Kafka client takes it.

        Raises:
            RuntimeError: It was never started, so it has no port yet.
        """
        return self._address

    def log_folder(self, topic: str, partition: int) -> Path:
        """Return the directory with the segments of a partition.

        Raises:
            RuntimeError: It was never started.
        """
        if self._folder is None:
            raise RuntimeError("this KafkaBroker was never started: call start() first")
        return self._folder / "data" / f"{topic}-{partition}"

    def start(self) -> None:
        """Start the broker, and return when it listens. Does nothing if it runs already.

        Raises:
            ConfigurationError: It is not installed; the message gives the remedy.
            RuntimeError: It ended or did not listen in time; the message quotes its last lines.
        """
        if self.is_running:
            return
        class_path = find_kafka()
        folder = self._folder = self._folder or self._make_folder()
        self._process = subprocess.Popen(
            [
                *("/bin/sh", "-c", _GUARDED, "sh", _JAVA, *_JAVA_OPTIONS, "-cp", class_path),
                *("kafka.Kafka", "server.properties"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._pid = int(self._process.stdout.readline())
        self._wait_until_it_listens(folder)

    def _make_folder(self) -> Path:
        """Make a folder with its settings and its formatted storage."""
        self._port, internal, controller = free_port(), free_port(), free_port()
        host = "127.0.0.1"
        protocols = f"CLIENTS:{self._protocol},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
        own = f"INTERNAL://{host}:{internal}"
        settings = self._settings | {
            "listeners": f"CLIENTS://{host}:{self._port},{own},CONTROLLER://{host}:{controller}",
            "advertised.listeners": f"CLIENTS://{self._advertised or self._address},{own}",
            "listener.security.protocol.map": protocols,
            "controller.quorum.voters": f"1@{host}:{controller}",
        }
        folder = Path(tempfile.mkdtemp(prefix="kafka-"))
        lines = [f"{name}={value}" for name, value in settings.items()]
        (folder / "server.properties").write_text("\n".join(lines))
        shutil.copytree(_FETCHED / "formatted", folder / "data")
        return folder

    def _wait_until_it_listens(self, folder: Path) -> None:
        until_s = time.monotonic() + _START_MAX_S
        while not listens(self._port):
            if time.monotonic() > until_s or not self.is_running:
                said = (folder / "output").read_text(errors="replace").splitlines()[-10:]
                self.kill()
                raise RuntimeError(f"Kafka did not start. Its last output: {' / '.join(said)}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it gracefully; the data are kept. Repeating is harmless."""
        if self.is_running:
            os.kill(self._pid, signal.SIGTERM)
            self.resume()  # A paused process handles SIGTERM only after SIGCONT.
            wait_for_end([self._pid])
        self.kill()

    def kill(self) -> None:
        """End it at once, as a crash would; the data are kept. Repeating is harmless."""
        process, self._process = self._process, None
        if process is None:
            return
        process.communicate()  # Closes its standard input.
        wait_for_end([self._pid])  # Until then its ports and data are in use.

    def remove(self) -> None:
        """Kill it, and remove its data."""
        self.kill()
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def __exit__(self, *_: object) -> None:
        """Kill it, and remove its data."""
        self.remove()
