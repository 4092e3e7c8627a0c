"""SIGINT and SIGTERM as a request to stop in good order; a second one ends the process at once.

So does the end of the time that a stop may take: a handler that blocks the event loop, a task that
does not listen to its cancellation or a thread that never returns keeps nobody else waiting.
"""

import asyncio
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Final

from eventproc.logs import Logger

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

GRACE: Final = timedelta(seconds=3)
"""On top of the time that a stop may take: for links to be closed."""

TELL_MAX_S: Final = 1.0
"""How long an end by force waits until the log has taken it down."""

OVERRUN_CODE: Final = 1
"""What the process ends with that did not stop in time."""


class StopSignals:
    """Waits for the first signal, wherever in the program's life it comes."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_signal: Callable[[str], None] = lambda _: None

    def tell(self, on_signal: Callable[[str], None]) -> None:
        """On this loop, call a function with the name of the first signal; maybe at once."""
        self._loop, self._on_signal = asyncio.get_running_loop(), on_signal
        if self._name is not None:
            on_signal(self._name)

    def come(self, name: str) -> None:
        """It came; called between any two steps of the main thread."""
        self._name = name
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._on_signal, name)


@contextmanager
def stop_signals(within: timedelta, log: Logger) -> Iterator[StopSignals]:
    """Take the first signal as a request to stop; leave the second to the operating system.

    The process is ended where the block lasts longer than *within*, and ``GRACE``, after the first
    one. Outside the main thread no signal arrives at all; stop the processor from elsewhere.
    """
    signals = StopSignals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    # Not an ``Event``: its lock could be held by the very thread that the signal interrupts.
    happened: queue.SimpleQueue[signal.Signals | None] = queue.SimpleQueue()
    watch = threading.Thread(
        target=_end_in_time, args=(happened, within + GRACE, log), daemon=True, name="eventproc-end"
    )

    def handle(number: int, _: object) -> None:
        for other in STOP_SIGNALS:
            signal.signal(other, signal.SIG_DFL)
        happened.put(signal.Signals(number))
        signals.come(signal.Signals(number).name)

    watch.start()
    before = {number: signal.signal(number, handle) for number in STOP_SIGNALS}
    try:
        yield signals
    finally:
        for number, was in before.items():
            with suppress(TypeError):  # Somebody else's, which Python knows nothing of.
                signal.signal(number, was)
        happened.put(None)


def _end_in_time(
    happened: "queue.SimpleQueue[signal.Signals | None]", budget: timedelta, log: Logger
) -> None:
    """End the process when its time is over: nothing else can, if the main thread is stuck."""
    if happened.get() is None:
        return
    with suppress(queue.Empty):
        happened.get(timeout=budget.total_seconds())
        return

    def tell() -> None:
        log.error("process_ended_by_force", after_s=budget.total_seconds())

    # Not here: the main thread may be stuck in writing to a log, with the lock that this needs.
    telling = threading.Thread(target=tell, daemon=True, name="eventproc-end-told")
    telling.start()
    telling.join(TELL_MAX_S)
    os._exit(OVERRUN_CODE)
