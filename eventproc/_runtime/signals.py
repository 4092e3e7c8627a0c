"""SIGINT and SIGTERM: the first asks the processor to stop, a second one ends the process at once.

The process also ends when the stop takes longer than allowed: because a handler blocks the event
loop, a task ignores its cancellation, or a thread never returns.
"""

import asyncio
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Final

from eventproc._base.logs import Logger

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

GRACE: Final = timedelta(seconds=3)
"""On top of the time that a stop may take: for links to be closed."""

REPEATED_WITHIN_S: Final = 0.1
"""A signal that comes this soon after the first is the same request: wrappers such as ``timeout``
send it to the process, and then to its process group."""

REPORT_MAX_S: Final = 1.0
"""How long to wait for the log event ``process_killed`` before the process is ended."""

OVERRUN_CODE: Final = 1
"""Exit code of a process that did not stop in time."""


class StopSignals:
    """Passes the first signal on, even one that came before the event loop started."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_signal: Callable[[str], None] = lambda _: None

    def subscribe(self, on_signal: Callable[[str], None]) -> None:
        """Call a function with the first signal's name, on the running loop; maybe at once."""
        self._loop, self._on_signal = asyncio.get_running_loop(), on_signal
        if self._name is not None:
            on_signal(self._name)

    def receive(self, name: str) -> None:
        """Note a signal; called by its handler, between any two steps of the main thread."""
        self._name = name
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._on_signal, name)


@contextmanager
def stop_signals(within: timedelta, log: Logger) -> Iterator[StopSignals]:
    """Handle the first signal as a request to stop; leave the second to the operating system.

    If the block still runs *within* plus ``GRACE`` after the first signal, the process is ended.
    Outside the main thread nothing is handled, because Python delivers no signals there.
    """
    signals = StopSignals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    # Not an ``Event``: the thread that the signal interrupts could hold its lock.
    happened: queue.SimpleQueue[signal.Signals | None] = queue.SimpleQueue()
    watch = threading.Thread(
        target=_end_in_time, args=(happened, within + GRACE, log), daemon=True, name="eventproc-end"
    )

    def handle(number: int, _: object) -> None:
        for other in STOP_SIGNALS:
            signal.signal(other, lambda *_: None)
        happened.put(signal.Signals(number))
        signals.receive(signal.Signals(number).name)
        time.sleep(REPEATED_WITHIN_S)
        for other in STOP_SIGNALS:
            signal.signal(other, signal.SIG_DFL)

    watch.start()
    before = {number: signal.signal(number, handle) for number in STOP_SIGNALS}
    try:
        yield signals
    finally:
        for number, was in before.items():
            with suppress(TypeError):  # ``None``: a handler that was not installed from Python.
                signal.signal(number, was)
        happened.put(None)


def _end_in_time(
    happened: "queue.SimpleQueue[signal.Signals | None]", budget: timedelta, log: Logger
) -> None:
    """End the process if it does not stop in time, from a thread: the main one may be blocked."""
    if happened.get() is None:
        return
    with suppress(queue.Empty):
        happened.get(timeout=budget.total_seconds())
        return

    def report() -> None:
        log.error("process_killed", after_s=budget.total_seconds())

    # In another thread: the main thread may be blocked in a log call, holding the log's lock.
    reporting = threading.Thread(target=report, daemon=True, name="eventproc-end-report")
    reporting.start()
    reporting.join(REPORT_MAX_S)
    os._exit(OVERRUN_CODE)
