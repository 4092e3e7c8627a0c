"""Starts and stops Azurite, Microsoft's emulator of Azure Blob Storage, from Python.

Rule 1: Azurite ends with the program that started it, even if that is killed.
Rule 2: nothing is installed here. If something is missing, the error names the command to get it.
"""

import os
import queue
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from eventproc._base.azure_storage.account import DEV_ACCOUNT_KEY, DEV_ACCOUNT_NAME
from eventproc.errors import ConfigurationError


class ChildServer(ABC):
    """A server on loopback in a child process; a context manager.

    The first start chooses a port, and later starts use it again.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._pid = 0
        """The process id of the server itself, which may be a child of ``_process``."""

        self._port = 0

    @abstractmethod
    def start(self) -> None:
        """Start it, and return when it listens. Does nothing if it runs already."""

    @abstractmethod
    def stop(self) -> None:
        """Stop it, and wait for its end. Repeating is harmless."""

    @property
    def is_running(self) -> bool:
        """Whether the process lives (a paused one does)."""
        return self._process is not None and self._process.poll() is None

    @property
    def _address(self) -> str:
        if self._port == 0:
            raise RuntimeError(f"this {type(self).__name__} was never started: call start() first")
        return f"127.0.0.1:{self._port}"

    def pause(self) -> None:
        """Freeze it: connections are accepted and nothing is answered until ``resume``."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue after ``pause``, with all data. Does nothing if it is not paused."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self.is_running:
            os.kill(self._pid, number)

    def __enter__(self) -> Self:
        """Start it."""
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop it."""
        self.stop()


ACCOUNT_NAME: Final = DEV_ACCOUNT_NAME
ACCOUNT_KEY: Final = DEV_ACCOUNT_KEY

PROGRAM_VARIABLE: Final = "EVENTPROC_AZURITE"
"""Environment variable: path of an ``azurite-blob`` program or of Azurite's ``blob/main.js``."""

_CHECKOUT: Final = Path(__file__).resolve().parents[2]
_MAIN: Final = _CHECKOUT / "azurite/node_modules/azurite/dist/src/blob/main.js"
_LISTENS: Final = re.compile(
    r"(Blob|Table) service (?:is )?successfully listen\w+ (?:on|at) https?://[^\s:]+:(\d+)"
)
_LINES_KEPT: Final = 20

END_WITH_PARENT: Final = f"--import={Path(__file__).with_suffix('.mjs').as_uri()}"
"""An option for Node.js: loads the file next to this one, which ends Azurite with its parent."""


def find_azurite(*, has_tables: bool = False) -> list[str]:
    """Return the command that starts Azurite's blob service, without arguments.

    With *has_tables* it starts all services. The places in the order of the search: the environment
    variable ``EVENTPROC_AZURITE``; the checkout that contains this package, after ``make azurite``;
    ``azurite-blob`` on the ``PATH``.

    Raises:
        ConfigurationError: It is not installed; the message says how to get it.
    """
    named = os.environ.get(PROGRAM_VARIABLE)
    if named:
        if not Path(named).exists():
            raise ConfigurationError(f"{PROGRAM_VARIABLE} names {named}, which does not exist")
        if not named.endswith(".js"):
            return [str(Path(named).with_name("azurite")) if has_tables else named]
    main = Path(named) if named else _MAIN
    if main.exists():
        return [_find_node(), str(main.parent.with_name("azurite.js") if has_tables else main)]
    found = shutil.which("azurite" if has_tables else "azurite-blob")
    if found is not None:
        return [found]
    raise ConfigurationError(
        "Azurite is not installed. In a checkout of eventproc: `make azurite`. Elsewhere, with "
        "Node.js: `npm install -g azurite`. Or set "
        f"{PROGRAM_VARIABLE} to the path of an `azurite-blob` program."
    )


def _find_node() -> str:
    """Return the Node.js that ``make`` fetched, else the one on the ``PATH``."""
    fetched = _CHECKOUT / ".tools/node/bin/node"
    found = str(fetched) if fetched.exists() else shutil.which("node")
    if found is None:
        raise ConfigurationError(
            "Azurite needs Node.js 20 or newer and there is no `node` on the PATH. In a checkout "
            "of eventproc: `make azurite` fetches both. Elsewhere: https://nodejs.org/"
        )
    return found


class Azurite(ChildServer):
    """One Azurite blob service on loopback, for tests and demonstrations.

    Use it as a context manager, or call ``start`` and ``stop``. It takes about a second to
    start; inside a running event loop call ``await asyncio.to_thread(azurite.start)``.

    The system chooses the port at the first start, and later starts use it again, so
    ``connection_string`` stays valid when Azurite is stopped and started again.

    Args:
        location: Keep the data in this directory, which must exist, so that it survives ``stop``
            and ``start``. ``None`` keeps it in memory, and every start begins empty.
        certificate: Serve HTTPS with this certificate and its key, two files (PEM). Then Azurite
            also accepts tokens of Entra ID; it checks their form, audience and expiry, but no
            signature and no role.
        has_tables: Start its table service, too.
        start_timeout: Raise an error if it does not listen by then.

    Note:
        With a ``location``, ``kill`` may lose the writes of the last few seconds, because Azurite
        saves its tables at intervals; ``stop`` loses none. To simulate a store that hangs, use
        ``pause``.
    """

    def __init__(
        self,
        *,
        location: Path | None = None,
        certificate: tuple[Path, Path] | None = None,
        has_tables: bool = False,
        start_timeout: timedelta = timedelta(seconds=60),
    ) -> None:
        super().__init__()
        self._start_timeout_s = start_timeout.total_seconds()
        self._location = location
        self._certificate = certificate
        self._has_tables = has_tables
        self._table_port = 0
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._said: deque[str] = deque(maxlen=_LINES_KEPT)

    @property
    def endpoint(self) -> str:
        """The account's URL, as ``BlobServiceClient`` takes it.

        Raises:
            RuntimeError: It was never started, so it has no port yet.
        """
        return f"{self._scheme}://{self._address}/{ACCOUNT_NAME}"

    @property
    def table_endpoint(self) -> str:
        """The URL of the account's table service, as ``TableServiceClient`` takes it.

        Raises:
            RuntimeError: It was never started with ``has_tables``, so it has no port.
        """
        if self._table_port == 0:
            raise RuntimeError("this Azurite was never started with has_tables: it has no tables")
        return f"{self._scheme}://127.0.0.1:{self._table_port}/{ACCOUNT_NAME}"

    @property
    def _scheme(self) -> str:
        return "http" if self._certificate is None else "https"

    @property
    def connection_string(self) -> str:
        """What ``from_connection_string`` of the stores takes.

        Raises:
            RuntimeError: It was never started, so it has no port yet.
        """
        tables = f"TableEndpoint={self.table_endpoint};" if self._has_tables else ""
        return (
            f"DefaultEndpointsProtocol={self._scheme};AccountName={ACCOUNT_NAME};"
            f"AccountKey={ACCOUNT_KEY};BlobEndpoint={self.endpoint};{tables}"
        )

    def start(self) -> None:
        """Start Azurite, and return when it listens. Does nothing if it runs already.

        Raises:
            ConfigurationError: Azurite or Node.js is not installed; the message gives the remedy.
            RuntimeError: It ended or did not listen in time; the message quotes its last lines.
        """
        if self.is_running:
            return
        self._process = self._spawn(find_azurite(has_tables=self._has_tables))
        self._pid = self._process.pid
        heard: queue.SimpleQueue[tuple[str, int] | None] = queue.SimpleQueue()
        threading.Thread(
            target=self._listen, args=(self._process, heard), name="azurite", daemon=True
        ).start()
        port_by_service: dict[str, int] = {}
        while len(port_by_service) < 1 + self._has_tables:
            try:
                listening = heard.get(timeout=self._start_timeout_s)
            except queue.Empty:
                listening = None
            if listening is None:
                self.kill()
                raise RuntimeError(
                    "Azurite did not start. Its last output: " + " / ".join(self._said)
                )
            port_by_service |= dict([listening])
        self._port = port_by_service["Blob"]
        self._table_port = port_by_service.get("Table", 0)

    def stop(self) -> None:
        """Stop it gracefully, which saves its data, and wait for its end. Repeating is harmless."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once, as a crash would. Repeating is harmless."""
        self._end(signal.SIGKILL)

    def restart(self, *, after: timedelta = timedelta(0)) -> None:
        """Stop it and start it again on the same port, with an outage of ``after`` in between."""
        self.stop()
        time.sleep(after.total_seconds())
        self.start()

    def _spawn(self, program: Sequence[str]) -> "subprocess.Popen[str]":
        """Start the process in a temporary directory, because it writes files there."""
        self._scratch = tempfile.TemporaryDirectory(prefix="azurite-")
        persistence = (
            ["--inMemoryPersistence"]
            if self._location is None
            else ["--location", str(self._location.absolute())]
        )
        tls: tuple[str, ...] = ()
        if self._certificate is not None:
            certificate, key = self._certificate
            tls = ("--cert", str(certificate), "--key", str(key), "--oauth", "basic")
        tables: tuple[str, ...] = ()
        if self._has_tables:
            tables = ("--tableHost", "127.0.0.1", "--tablePort", str(self._table_port))
            tables += ("--queueHost", "127.0.0.1", "--queuePort", "0")  # It starts all services.
        options = os.environ.get("NODE_OPTIONS", "")
        return subprocess.Popen(
            [
                *program,
                *("--blobHost", "127.0.0.1", "--blobPort", str(self._port)),
                *tables,
                *persistence,
                *tls,
                # The client library may use a newer API version than Azurite knows.
                "--skipApiVersionCheck",
                "--disableTelemetry",
                "--silent",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self._scratch.name,
            env=os.environ | {"NODE_OPTIONS": f"{options} {END_WITH_PARENT}".strip()},
            # Ctrl-C must not end Azurite: a program still uses its storage while it stops.
            start_new_session=True,
        )

    def _listen(
        self, process: "subprocess.Popen[str]", heard: "queue.SimpleQueue[tuple[str, int] | None]"
    ) -> None:
        """Read its output until it ends, so that its pipe never fills."""
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self._said.append(line.strip())
                found = _LISTENS.search(line)
                if found is not None:
                    heard.put((found[1], int(found[2])))
        heard.put(None)

    def _end(self, how: signal.Signals) -> None:
        """Send the signal and wait; one that does not finish in ten seconds is killed."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        process.send_signal(signal.SIGCONT)  # a paused process handles SIGTERM only after SIGCONT
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin is not None:
            process.stdin.close()
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None
