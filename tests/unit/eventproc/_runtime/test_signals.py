"""Signals before, during and after a stop: what they do to a program."""

import signal
import subprocess
import sys

from eventproc._runtime.signals import OVERRUN_CODE, StopSignals

PROGRAM = """
import signal, threading, time
from datetime import timedelta
from eventproc._base.logs import get_logger
from eventproc._runtime.signals import GRACE, STOP_SIGNALS, stop_signals

before = [signal.getsignal(number) for number in STOP_SIGNALS]
for number in STOP_SIGNALS:
    with stop_signals(timedelta(seconds=0.5) - GRACE, get_logger("test")):
        signal.raise_signal(number)
    for thread in threading.enumerate():
        if thread.name == "eventproc-end":
            thread.join(10)  # The process has died before, or the thread ends.
print([signal.getsignal(number) for number in STOP_SIGNALS] == before)
"""


def test_a_program_that_lives_on_after_a_stop_by_a_signal_is_not_killed():
    """It may write a report, or run the processor again. Its own signal handlers are back."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr


LOCKED_LOG = """
import logging, signal, threading
from datetime import timedelta
from eventproc._base.logs import get_logger
from eventproc._runtime.signals import GRACE, stop_signals

handler = logging.StreamHandler()
logging.getLogger().addHandler(handler)
with stop_signals(timedelta(seconds=0.5) - GRACE, get_logger("test")):
    handler.acquire()
    signal.raise_signal(signal.SIGTERM)
    threading.Event().wait(20)
print("it lives")
"""


def test_a_process_that_hangs_in_a_log_call_is_ended_in_time():
    """As when nobody reads its standard error. The log's lock is held, so nothing is logged."""
    done = subprocess.run(
        [sys.executable, "-c", LOCKED_LOG], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout) == (OVERRUN_CODE, ""), done.stderr


OTHER_SIGNAL = """
import os, signal
from datetime import timedelta
from eventproc._base.logs import get_logger
from eventproc._runtime.signals import stop_signals

with stop_signals(timedelta(minutes=1), get_logger("test")):
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGINT)
print("it lives")
"""

SENT_TWICE = """
import os, signal, threading
from datetime import timedelta
from eventproc._base.logs import get_logger
from eventproc._runtime.signals import stop_signals

def twice():
    os.kill(os.getpid(), signal.SIGINT)
    asked.wait()
    os.kill(os.getpid(), signal.SIGINT)

asked = threading.Event()
with stop_signals(timedelta(minutes=1), get_logger("test")) as signals:
    note, sender = signals.receive, threading.Thread(target=twice)
    signals.receive = lambda name: (note(name), asked.set())
    sender.start()
    sender.join()
print("it lives")
"""


def test_a_signal_that_is_sent_twice_at_once_is_one_request():
    """``timeout`` sends it to the process, and to its process group."""
    done = subprocess.run(
        [sys.executable, "-c", SENT_TWICE], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "it lives", "")


def test_ctrl_c_after_sigterm_kills_the_process_at_once():
    """Any second signal does, also one of the other kind."""
    done = subprocess.run(
        [sys.executable, "-c", OTHER_SIGNAL],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout) == (-signal.SIGINT, ""), done.stderr


async def test_a_signal_before_the_event_loop_is_passed_on_as_soon_as_somebody_asks():
    """It may come while the loop is being set up, or while the source is imported."""
    signals, seen = StopSignals(), list[str]()
    signals.receive("SIGTERM")
    signals.subscribe(seen.append)

    assert seen == ["SIGTERM"]


RUN = """
import os, signal
from checkpointstores.memory import MemoryCheckpointStore
from eventproc import EventProcessor, PartitionHandler
from eventproc.sources.memory import MemoryEventSource, MemoryHub

class Stopping(PartitionHandler):
    async def process_event(self, context, event):
        os.kill(os.getpid(), signal.SIGTERM)

    async def close(self, context, reason):
        print(reason.name)

hub = MemoryHub(1)
hub.publish(b"")
EventProcessor(
    source=MemoryEventSource(hub), store=MemoryCheckpointStore(), handler=Stopping
).run()
print("returned")
"""


def test_run_returns_after_a_signal():
    """Handlers are closed; a signal is no error."""
    done = subprocess.run(
        [sys.executable, "-c", RUN], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout.split()) == (0, ["SHUTDOWN", "returned"]), done.stderr
