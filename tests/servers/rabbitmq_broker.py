"""Starts and stops RabbitMQ from Python.

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
_FETCHED: Final = _CHECKOUT / ".tools/rabbitmq"

_GUARDED: Final = """\
exec 3<&0 </dev/null >"$RABBITMQ_LOG_BASE/output" 2>&1
{ cat <&3 >/dev/null; kill -9 0; } &
epmd &
"$@"
kill -9 0
"""
"""Shell commands: run a program until standard input ends, as it does when the parent ends, and the
daemon by which Erlang finds nodes. Then end all their processes."""

_CONFIG: Final = """\
listeners.tcp.1 = 127.0.0.1:{amqp}
disk_free_limit.absolute = 50MB
raft.wal_max_size_bytes = 33554432
log.console = false
log.file.level = warning
"""

_ERLANG_ARGS: Final = "+sbwt none +sbwtdcpu none +sbwtdio none"
"""Makes threads without work sleep at once. By default they spin first, which wastes CPU time."""


def find_rabbitmq() -> str:
    """Return the path of the program ``rabbitmq-server``.

    ``make rabbitmq`` puts it into the checkout; otherwise the one on the ``PATH`` is taken.

    Raises:
        ConfigurationError: It is not installed; the message says how to get it.
    """
    if (_FETCHED / ".done").exists():
        return str(_FETCHED / "server/sbin/rabbitmq-server")
    found = shutil.which("rabbitmq-server")
    if found is not None:
        return found
    raise ConfigurationError(
        "RabbitMQ is not installed. On Debian, in a checkout of eventproc: `make rabbitmq`. "
        "Elsewhere install RabbitMQ 3.10 or newer."
    )


class RabbitMqBroker(ChildServer):
    """One RabbitMQ broker on loopback.

    Use it as a context manager, or call ``start`` and ``stop``. It takes some seconds to start;
    inside a running event loop call ``await asyncio.to_thread(broker.start)``.

    The first start chooses the ports, and later starts use them again, so ``url`` stays valid.

    Args:
        location: Keep the data in this directory, which must exist, so that it survives ``stop``,
            ``kill`` and ``start``. ``None``: every start begins empty.
    """

    def __init__(
        self,
        *,
        location: Path | None = None,
    ) -> None:
        super().__init__()
        self._location = location
        self._scratch: tempfile.TemporaryDirectory[str] | None = None

    @property
    def url(self) -> str:
        """Its AMQP URL, with user and password.

        Raises:
            RuntimeError: It was never started, so it has no port yet.
        """
        return f"amqp://guest:guest@{self._address}/"

    def start(self) -> None:
        """Start the broker, and return when it listens. Does nothing if it runs already.

        Raises:
            ConfigurationError: It is not installed; the message gives the remedy.
            RuntimeError: It ended or did not listen in time; the message quotes its last lines.
        """
        if self.is_running:
            return
        program = find_rabbitmq()
        self._port = self._port or free_port()
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _GUARDED, "sh", program],
            stdin=subprocess.PIPE,
            text=True,
            env=os.environ | self._environment(self._make_folder()),
            start_new_session=True,
        )
        self._wait_until_it_listens()
        self._pid = int((self._folder / "pid").read_text())

    @property
    def _folder(self) -> Path:
        if self._location is not None:
            return self._location
        assert self._scratch is not None, "it runs"
        return Path(self._scratch.name)

    def _make_folder(self) -> Path:
        """Write the files that it is started with."""
        if self._location is None:
            self._scratch = tempfile.TemporaryDirectory(
                prefix="rabbitmq-", ignore_cleanup_errors=True
            )
        folder = self._folder
        (folder / "log").mkdir(exist_ok=True)
        config = _CONFIG.format(amqp=self._port)
        (folder / "rabbitmq.conf").write_text(config)
        (folder / "pid").unlink(missing_ok=True)
        return folder

    def _environment(self, folder: Path) -> Mapping[str, str]:
        erlang = _FETCHED / "erlang/bin"
        return {
            "PATH": f"{erlang}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "HOME": str(folder),  # Erlang keeps a cookie there.
            "ERL_CRASH_DUMP_SECONDS": "0",
            "ERL_EPMD_PORT": str(free_port()),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"rabbit{self._port}@localhost",
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "none"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _ERLANG_ARGS,
        }

    def _wait_until_it_listens(self) -> None:
        until_s = time.monotonic() + _START_MAX_S
        pid = self._folder / "pid"  # It may be written after the broker listens.
        while not (listens(self._port) and pid.exists() and pid.read_text().strip()):
            if time.monotonic() > until_s or not self.is_running:
                said = self._said()
                self.kill()
                raise RuntimeError(f"RabbitMQ did not start. Its last output: {said}")
            time.sleep(0.05)

    def _said(self) -> str:
        files = [self._folder / "log/output", *self._folder.glob("log/*.log")]
        texts = [file.read_text(errors="replace") for file in files if file.exists()]
        return " / ".join("".join(texts).splitlines()[-10:]) or "nothing"

    def stop(self) -> None:
        """Stop it gracefully, and wait for its end. Repeating is harmless."""
        if self.is_running and self._pid:
            os.kill(self._pid, signal.SIGTERM)
            self.resume()  # a paused process handles SIGTERM only after SIGCONT
            wait_for_end([self._pid])
        self.kill()

    def kill(self) -> None:
        """End it at once, as a crash would. Repeating is harmless."""
        process, self._process = self._process, None
        if process is not None:
            process.communicate()  # closes its standard input
        if self._pid:
            wait_for_end([self._pid])  # Until then its ports are in use.
            self._pid = 0
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None
