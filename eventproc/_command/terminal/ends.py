"""How processes of the command end: by a signal, or with the process that started them.

A child process watches standard input, a pipe from its parent. The operating system closes the
parent's end of the pipe, even if the parent was killed and could not send a signal.
"""

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, Final

from eventproc._base.tasks import end

STANDARD_INPUT: Final = 0


async def until_signal(*working: "Coroutine[Any, Any, object] | asyncio.Task[None]") -> None:
    """Work until SIGINT or SIGTERM comes, or until one of the tasks ends; its error is raised."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # On Windows Ctrl+C interrupts.
            loop.add_signal_handler(number, stopped.set)
    tasks = [asyncio.ensure_future(each) for each in (stopped.wait(), *working)]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    await end(tasks)
    for task in done:
        task.result()


class ChildProcess(subprocess.Popen[bytes]):
    """A process with a standard input, and with pipes where ``start_child`` was asked for them."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]


def start_child(
    command: Sequence[str],
    *,
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
    env: Mapping[str, str],
) -> ChildProcess:
    """Start a command that stops at the end of its standard input; *env* is added to this one's.

    It is in a process group of its own, so that Ctrl+C signals only the parent. It stays in the
    session: a child that is suspended when its parent ends is then ended by the kernel.
    """
    return ChildProcess(
        command,
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        env={**os.environ, **env},
        process_group=0 if os.name == "posix" else None,
    )


def stop_at_end_of_input() -> None:
    """Start a thread that sends SIGTERM to this process when standard input ends."""
    watch_input(lambda: os.kill(os.getpid(), signal.SIGTERM))


def watch_input(at_end: Callable[[], None], at_data: Callable[[], None] = lambda: None) -> None:
    """Start a thread that calls *at_data* when there is input, and *at_end* when it ends."""

    def watch() -> None:
        # Not through sys.stdin: this thread would hold its lock when the interpreter exits.
        while os.read(STANDARD_INPUT, 4096):
            at_data()
        at_end()

    threading.Thread(target=watch, name="input", daemon=True).start()
