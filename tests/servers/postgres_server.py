"""Starts and stops PostgreSQL from Python.

Rule: the server ends with the program that started it, even if that is killed.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from eventproc.errors import ConfigurationError
from eventproc.testing._azurite import ChildServer
from tests.servers.ports import STOP_MAX_S, free_port, wait_for_end

_START_MAX_S: Final = 60.0

_UNPRIVILEGED: Final = "nobody"
"""PostgreSQL refuses to run as root, so then it runs as this user."""

_PASSWORD: Final = "local"

_GUARDED: Final = """\
exec 3<&0 </dev/null >>output 2>&1
"$@" &
server=$!
{ cat <&3 >/dev/null; kill -9 $server; } &
wait $server
"""
"""Shell commands: run a program, and kill it when standard input ends, as when the parent ends."""

_SETTINGS: Final = {
    "fsync": "off",  # Only a crash of the machine loses data without it.
    "max_connections": "200",
    "shared_buffers": "32MB",
    "log_min_messages": "warning",
    "unix_socket_directories": "",
}

_INITDB: Final = (
    *("-D", "data", "-U", "postgres", "--pwfile=password", "--auth=scram-sha-256"),
    *("--encoding=utf8", "--locale=C", "--no-sync"),
)


def find_postgres() -> Path:
    """Return the directory with the programs ``postgres`` and ``initdb`` of ``pgserver``."""
    # Its import would create folders for the user, and only its programs are needed.
    package = find_spec("pgserver")
    if package is None or package.origin is None:
        raise ConfigurationError(
            "There is no PostgreSQL for this Python: `make venv` with Python 3.11 or 3.12"
        )
    return Path(package.origin).parent / "pginstall/bin"


class PostgresServer(ChildServer):
    """One PostgreSQL server on loopback.

    Use it as a context manager, or call ``start`` and ``stop``. Inside a running event loop call
    ``await asyncio.to_thread(server.start)``. Port and data are kept over ``stop``, ``kill`` and
    ``start``, until ``remove``.

    Args:
        settings: Server settings, by name.
    """

    def __init__(
        self,
        *,
        settings: dict[str, str] | None = None,
    ) -> None:
        super().__init__()
        self._settings = _SETTINGS | (settings or {})
        self._folder: Path | None = None

    @property
    def dsn(self) -> str:
        """Its connection string, with user and password.

        Raises:
            RuntimeError: it was never started, so it has no port yet.
        """
        return self.dsn_through(self.port)

    @property
    def port(self) -> int:
        """Where it listens on loopback.

        Raises:
            RuntimeError: it was never started, so it has no port yet.
        """
        return int(self._address.rpartition(":")[2])

    def dsn_through(self, port: int) -> str:
        """Return the connection string by another port on loopback, such as that of a proxy."""
        return f"postgresql://postgres:{_PASSWORD}@127.0.0.1:{port}/postgres"

    def start(self) -> None:
        """Start the server, and return when it accepts connections. Does nothing if it runs.

        Raises:
            RuntimeError: it ended or did not start in time; the message quotes its last lines.
        """
        if self.is_running:
            return
        programs = find_postgres()
        folder = self._folder = self._folder or self._make_folder(programs)
        self._port = self._port or free_port()
        former = self._status()
        options = self._settings | {"port": str(self._port), "listen_addresses": "127.0.0.1"}
        arguments = [f"--{name}={value}" for name, value in options.items()]
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _GUARDED, "sh", programs / "postgres", "-D", "data", *arguments],
            stdin=subprocess.PIPE,
            text=True,
            cwd=folder,
            start_new_session=True,
            **_unprivileged(),
        )
        self._wait_until_ready(former)

    def _make_folder(self, programs: Path) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        (folder / "password").write_text(f"{_PASSWORD}\n")
        if os.geteuid() == 0:
            shutil.chown(folder, _UNPRIVILEGED)
            shutil.chown(folder / "password", _UNPRIVILEGED)
        made = subprocess.run(
            [str(programs / "initdb"), *_INITDB],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            **_unprivileged(),
        )
        if made.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            raise RuntimeError(f"initdb failed: {made.stderr.strip()}")
        return folder

    def _status(self) -> list[str]:
        """Return the lines of the server's status file, which stays after a kill."""
        assert self._folder is not None, "it was made"
        try:
            return (self._folder / "data/postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _wait_until_ready(self, former: list[str]) -> None:
        assert self._folder is not None, "it was made"
        until_s = time.monotonic() + _START_MAX_S
        while (status := self._status()) == former or not status or "ready" not in status[-1]:
            if time.monotonic() > until_s or not self.is_running:
                said = (self._folder / "output").read_text(errors="replace").splitlines()[-10:]
                self.kill()
                raise RuntimeError(f"PostgreSQL did not start. Its last output: {said}")
            time.sleep(0.02)
        self._pid = int(status[0])

    def stop(self) -> None:
        """End all sessions and stop it; the data are kept. Repeating is harmless."""
        if self.is_running and self._pid:
            self.resume()
            os.kill(self._pid, signal.SIGINT)
            self._wait_for_end()
        self._forget()

    def kill(self) -> None:
        """End it at once, as a crash would. Repeating is harmless."""
        if self.is_running and self._pid:
            children = self._sessions()
            os.kill(self._pid, signal.SIGKILL)
            for child in children:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            wait_for_end(children)  # Until then no server can use the data.
        self._forget()

    def _signal(self, number: signal.Signals) -> None:
        """Signal all of its processes: the sessions run without the one that started them."""
        super()._signal(number)
        for child in self._sessions():
            with suppress(ProcessLookupError):
                os.kill(child, number)

    def _sessions(self) -> list[int]:
        try:
            text = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text()
        except FileNotFoundError:
            return []
        return [int(pid) for pid in text.split()]

    def remove(self) -> None:
        """Stop it, and remove its data."""
        self.stop()
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def __exit__(self, *_: object) -> None:
        """Stop it, and remove its data."""
        self.remove()

    def _wait_for_end(self) -> None:
        assert self._process is not None, "it runs"
        try:
            self._process.wait(STOP_MAX_S)
        except subprocess.TimeoutExpired:
            os.kill(self._pid, signal.SIGKILL)

    def _forget(self) -> None:
        process, self._process = self._process, None
        self._pid = 0
        if process is not None:
            process.communicate()  # Closes its standard input.


def _unprivileged() -> dict[str, Any]:
    """Return arguments of ``subprocess`` that drop the rights of root."""
    if os.geteuid() != 0:
        return {}
    return {"user": _UNPRIVILEGED, "group": "nogroup", "extra_groups": []}
