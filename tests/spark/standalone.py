"""A standalone cluster on this machine: a master, two workers, and drivers that are programs.

Each is a separate process that can be killed or frozen. Only the pip-installed Spark is needed;
``/proc`` shows which process started which.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pyspark

SPARK_CLASS: Final = Path(pyspark.__file__).parent / "bin/spark-class"
HOSTS: Final = ("127.0.0.1", "127.0.0.2")
"""The hosts of the workers: Spark speculates only on another host. Linux answers on both."""

CORES: Final = 2
"""The cores of each worker: two applications with two executors each can run at once."""

JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Optimized compilation costs more than it gains where everything runs once."""

TIMEOUT_S: Final = 600.0
POLL_S: Final = 0.05

SETTINGS: Final = {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": JAVA,
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.driver.host": "127.0.0.1",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""The settings of every application; a program can override them."""


def parent_by_process() -> dict[int, int]:
    """Return all processes of the machine, each with its parent."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            found[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it ended just now
    return found


def below(process_id: int) -> list[int]:
    """Return a process and all its descendants, parents first."""
    parents = parent_by_process()
    tree = [process_id]
    for member in tree:
        tree += [child for child, parent in parents.items() if parent == member]
    return tree


def executor_above(process_id: int) -> int:
    """Return the executor's Java process that a Python worker belongs to."""
    parents = parent_by_process()
    while b"ExecutorBackend" not in Path(f"/proc/{process_id}/cmdline").read_bytes():
        process_id = parents[process_id]
    return process_id


class Driver:
    """A program that is the driver of an application, with its Java and Python processes."""

    def __init__(self, arguments: Sequence[str], env: Mapping[str, str], output: Path) -> None:
        self.output = output
        with output.open("wb") as file:
            self._process = subprocess.Popen(
                [sys.executable, *arguments],
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    @property
    def text(self) -> str:
        """The output so far, of both streams."""
        return self.output.read_text("utf-8", "replace")

    def freeze(self) -> None:
        """Suspend all processes of the driver."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume all processes of the driver."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill all processes of the driver at once."""
        if self._process.poll() is None:
            self._signal(signal.SIGKILL)
        self._process.wait()

    def wait(self, timeout_s: float = TIMEOUT_S) -> int:
        """Wait until the driver has ended; return its exit code."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the driver did not end: {self.text[-3000:]}") from None

    def check(self) -> None:
        """Fail if the driver has ended."""
        assert self._process.poll() is None, f"the driver ended: {self.text[-3000:]}"

    def until(self, path: Path) -> None:
        """Wait until a file exists; fail if the driver ends before."""
        give_up_at = time.monotonic() + TIMEOUT_S
        while not path.exists():
            self.check()
            assert time.monotonic() < give_up_at, f"no {path.name} yet: {self.text[-3000:]}"
            time.sleep(POLL_S)

    def _signal(self, number: signal.Signals) -> None:
        for process_id in below(self._process.pid):
            try:
                os.kill(process_id, number)
            except ProcessLookupError:
                continue


class Standalone:
    """A running cluster."""

    def __init__(self, url: str, worker_ids: Sequence[int], folder: Path) -> None:
        self.url = url
        self.worker_ids = worker_ids
        self._folder = folder
        self._driver_count = 0

    @contextmanager
    def driver(
        self, *arguments: str, env: Mapping[str, str], settings: Mapping[str, str]
    ) -> Iterator[Driver]:
        """Run a Python program as the driver of an application; kill it at the end.

        Args:
            arguments: Of Python: the program, and its own. ``SparkSession.builder.getOrCreate()``
                in it gives a session on this cluster.
            env: What driver and executors find in their environment.
            settings: Of Spark, above ``SETTINGS``.
        """
        executors = {f"spark.executorEnv.{name}": value for name, value in env.items()}
        pairs = {**SETTINGS, **executors, **settings}.items()
        submit = [f"--conf {name}='{value}'" for name, value in pairs]
        submit = ["--master", self.url, *submit, "pyspark-shell"]
        self._driver_count += 1
        output = self._folder / f"driver-{self._driver_count}.log"
        driver = Driver(arguments, {**env, "PYSPARK_SUBMIT_ARGS": " ".join(submit)}, output)
        try:
            yield driver
        finally:
            driver.kill()


@contextmanager
def standalone(folder: Path) -> Iterator[Standalone]:
    """Start a master and two workers; at the end kill them and all that they started."""
    with ExitStack() as stack:
        main = "org.apache.spark.deploy.{}"
        ports = ["--port", "0", "--webui-port", "0"]
        command = [main.format("master.Master"), "--host", HOSTS[0], *ports]
        master = stack.enter_context(daemon(folder / "master.log", *command))
        url = wait_for(master, r"Starting Spark master at (spark://\S+)")
        work = ["--cores", str(CORES), "--memory", "2g", "--work-dir", str(folder / "work")]
        workers = []
        for host in HOSTS:
            command = [main.format("worker.Worker"), "--host", host, *ports, *work, url]
            workers.append(stack.enter_context(daemon(folder / f"{host}.log", *command)))
        for worker in workers:
            wait_for(worker, r"(Successfully registered) with master")
        yield Standalone(url, [worker.pid for worker, _ in workers], folder)


_Daemon = tuple[subprocess.Popen[bytes], Path]
"""A process and its log."""


@contextmanager
def daemon(log: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Iterator[_Daemon]:
    """Run a class of Spark; at the end kill it and all that it started."""
    memory = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": JAVA}
    with log.open("wb") as file:
        process = subprocess.Popen(
            [SPARK_CLASS, *arguments],
            env={**os.environ, **memory, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process, log
    finally:
        for process_id in below(process.pid):
            try:
                os.kill(process_id, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()


def wait_for(running: _Daemon, pattern: str) -> str:
    """Return what a pattern matches in a log, as soon as it does."""
    process, log = running
    give_up_at = time.monotonic() + TIMEOUT_S
    while (found := re.search(pattern, log.read_text("utf-8", "replace"))) is None:
        assert process.poll() is None, log.read_text("utf-8", "replace")
        assert time.monotonic() < give_up_at, log.read_text("utf-8", "replace")
        time.sleep(POLL_S)
    return found[1]
