"""A standalone cluster on this machine: a master, two workers, and drivers that are programs.

Each is a process of its own and can be killed or frozen for itself. Nothing but the pip-installed
Spark is needed; ``/proc`` tells who belongs to whom.
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
"""Of the workers: Spark speculates only where there is another host. Linux answers on both."""

CORES: Final = 2
"""Of each worker: two applications of two executors fit beside each other."""

JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Compiling well costs more than it gains where everything runs once."""

PATIENCE_S: Final = 600.0
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
"""Of every application; a program can overrule them."""


def parent_by_process() -> dict[int, int]:
    """Return all processes of the machine, and who started each."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            found[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it ended just now
    return found


def below(process_id: int) -> list[int]:
    """Return a process and all that descend from it, parents first."""
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
    """A program that is the driver of an application, with its Java and the Pythons of that."""

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
        """What it has printed so far, also to standard error."""
        return self.output.read_text("utf-8", "replace")

    def freeze(self) -> None:
        """Let all of it stand still."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let all of it go on."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End all of it at once, as a machine does that loses its power."""
        if self._process.poll() is None:
            self._signal(signal.SIGKILL)
        self._process.wait()

    def wait(self, timeout_s: float = PATIENCE_S) -> int:
        """Wait until it has ended; return its exit code."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the driver did not end: {self.text[-3000:]}") from None

    def check(self) -> None:
        """Refuse to wait for one that has ended."""
        assert self._process.poll() is None, f"the driver ended: {self.text[-3000:]}"

    def until(self, path: Path) -> None:
        """Wait until a file is there; the driver has to live that long."""
        give_up_at = time.monotonic() + PATIENCE_S
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
    """A cluster that runs."""

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
    """Start a master and two workers; end them, and whatever they have started."""
    with ExitStack() as stack:
        main = "org.apache.spark.deploy.{}"
        ports = ["--port", "0", "--webui-port", "0"]
        command = [main.format("master.Master"), "--host", HOSTS[0], *ports]
        master = stack.enter_context(_daemon(folder / "master.log", *command))
        url = _wait_for(master, r"Starting Spark master at (spark://\S+)")
        work = ["--cores", str(CORES), "--memory", "2g", "--work-dir", str(folder / "work")]
        workers = []
        for host in HOSTS:
            command = [main.format("worker.Worker"), "--host", host, *ports, *work, url]
            workers.append(stack.enter_context(_daemon(folder / f"{host}.log", *command)))
        for worker in workers:
            _wait_for(worker, r"(Successfully registered) with master")
        yield Standalone(url, [worker.pid for worker, _ in workers], folder)


_Daemon = tuple[subprocess.Popen[bytes], Path]
"""A process and its log."""


@contextmanager
def _daemon(log: Path, *arguments: str) -> Iterator[_Daemon]:
    env = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": JAVA}
    with log.open("wb") as file:
        process = subprocess.Popen(
            [SPARK_CLASS, *arguments],
            env={**os.environ, **env},
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


def _wait_for(daemon: _Daemon, pattern: str) -> str:
    """Return what a pattern finds in a log, as soon as it is there."""
    process, log = daemon
    give_up_at = time.monotonic() + PATIENCE_S
    while (found := re.search(pattern, log.read_text("utf-8", "replace"))) is None:
        assert process.poll() is None, log.read_text("utf-8", "replace")
        assert time.monotonic() < give_up_at, log.read_text("utf-8", "replace")
        time.sleep(POLL_S)
    return found[1]
