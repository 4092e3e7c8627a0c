"""Azure's clients for Java and Go, each in a program that carries out commands.

A command is a line of JSON on its standard input, ``{"do": NAME, ...}``, and is answered by a line
``{"answer": VALUE}`` or ``{"error": TEXT, "code": CODE}``. Both programs have the same commands:

================================ =================================================================
``connect``                      ``connection``, ``hub``, ``group``; ``endpoint``, ``web_socket``,
                                 ``ca``, ``identifier``
``hub``, ``partition``           the properties of the hub, or of ``partition_id``
``send``                         ``events`` in one batch to ``partition_id``, to that of
                                 ``partition_key``, or to any
``send_buffered``                ``events`` by the buffering producer, which only Java has
``receive``                      up to ``count`` events within ``timeout_s``. A new name of a
                                 ``receiver`` opens it, at ``offset``, ``sequence_number``,
                                 ``enqueued_ms``, ``is_latest`` or the beginning; ``owner_level``
``close``                        a ``receiver``
``claim``, ``checkpoint``        writes ``records`` by the checkpoint store of ``storage`` and
                                 ``container``
``ownerships``, ``checkpoints``  what that store has of ``namespace``, ``hub`` and ``group``
``process``, ``stop``            a processor on that store; ``interval_s``, ``expiration_s``; it
                                 ignores events after the sequence number ``last``
================================ =================================================================

A processor writes lines of its own: ``opened`` and ``closed`` with a partition id, ``handled`` and
``checkpointed`` with ``sequence_number``, and ``failed``.
"""

import json
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from queue import Queue
from typing import Any, Self

from eventproc.errors import ConfigurationError

TOOLS = Path(__file__).resolve().parents[3] / ".tools"
ANSWER_S = 60

SDKS = ("java", "go")


class ForeignError(Exception):
    """The client's own error; ``code`` is the condition that its SDK names, if it names one."""

    def __init__(self, text: str, code: str | None) -> None:
        super().__init__(text)
        self.code = code


def command_of(sdk: str, *options: str) -> list[str]:
    """Return the command that starts the client's program.

    Raises:
        ConfigurationError: It is not built; the message says how to build it.
    """
    folder = folder_of(f"azure_{sdk}")
    if sdk == "go":
        return [str(folder / "client")]
    return [*java_command(folder, *options), "Client"]


def folder_of(client: str) -> Path:
    """Return the folder of a client that a target of the Makefile builds.

    Raises:
        ConfigurationError: It is not built; the message says how to build it.
    """
    folder = TOOLS / client
    if not (folder / ".done").exists():
        raise ConfigurationError(f"{folder} is not built: `make clients`")
    return folder


def java_command(folder: Path, *options: str) -> list[str]:
    """Return what starts a class in the folder of a client."""
    classpath = ":".join(map(str, [folder / "classes", *(folder / "jars").iterdir()]))
    quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    return [str(TOOLS / "java/bin/java"), *quick, *options, "-cp", classpath]


class Program:
    """A running program that prints lines of JSON, and ends when its standard input does."""

    def __init__(self, command: Sequence[str]) -> None:
        self.said: list[dict[str, Any]] = []
        """Each line with the time at which it arrived, ``at_s``."""

        self.process = subprocess.Popen(
            command,
            cwd=TOOLS.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for text in self.process.stdout:
            self._hear(json.loads(text) | {"at_s": time.monotonic()})

    def _hear(self, line: dict[str, Any]) -> None:
        self.said.append(line)

    def stop(self, max_s: float) -> bool:
        """Let it end, and kill it if it takes too long; return whether it ended by itself."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(max_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        self._end()
        return True

    def kill(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()
        self._end()

    def _end(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._reading.join()
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()


class ForeignClient(Program):
    """A running program with one of Azure's clients."""

    def __init__(self, sdk: str, *options: str) -> None:
        self.sdk = sdk
        self._answers: Queue[dict[str, Any]] = Queue()
        super().__init__(command_of(sdk, *options))

    def _hear(self, line: dict[str, Any]) -> None:
        if {"answer", "error"} & line.keys():
            self._answers.put(line)
        else:
            super()._hear(line)

    def ask(self, do: str, **command: Any) -> Any:
        """Send a command, and return its answer.

        Raises:
            ForeignError: The client answered with an error.
        """
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **command}) + "\n")
        self.process.stdin.flush()
        line = self._answers.get(timeout=ANSWER_S)
        if "error" in line:
            raise ForeignError(line["error"], line.get("code"))
        return line["answer"]

    def connect(self, connection: str, hub: str, group: str = "$Default", **options: Any) -> None:
        """Connect to a hub; former connections are closed."""
        self.ask("connect", connection=connection, hub=hub, group=group, **options)

    @property
    def handled(self) -> list[tuple[str, int]]:
        """Partition and sequence number of each event that a processor handled, in order."""
        return [(one["handled"], one["sequence_number"]) for one in self.said if "handled" in one]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(20)
