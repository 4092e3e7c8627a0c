"""SIGINT and SIGTERM as a request to stop in good order; a second one ends the process at once."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_signals(on_signal: Callable[[str], None]) -> Iterator[None]:
    """Call ``on_signal`` with the name of the first signal; leave the second to its default.

    On a platform whose event loop takes no signal handlers (Windows), SIGINT stays what it is: it
    ends ``asyncio.run``, which cancels the processor, which then stops in good order. Outside the
    main thread no signal arrives at all; stop the processor from elsewhere.
    """
    loop = asyncio.get_running_loop()

    def restore() -> None:
        for number in STOP_SIGNALS:
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(number)

    def handle(number: signal.Signals) -> None:
        restore()
        on_signal(number.name)

    for number in STOP_SIGNALS:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, handle, number)
    try:
        yield
    finally:
        restore()
