"""Work in a thread beside a block, a loop in a thread, and what garbage collection leaves out."""

import asyncio
import subprocess
import sys
import threading

from eventproc._base.threads import Background, LoopThread


class Work(Background):
    """Records in which thread it runs, and until when."""

    def __init__(self):
        super().__init__("work")
        self.thread: threading.Thread
        self.has_ended = threading.Event()

    def _run(self):
        self.thread = threading.current_thread()
        self._ended.wait(10)
        self.has_ended.set()


def test_a_block_has_a_thread_of_its_own():
    """A daemon with the given name, so that it keeps no program from exiting."""
    with Work() as work:
        assert not work.has_ended.wait(0.05)

    assert work.has_ended.wait(10)
    assert (work.thread.name, work.thread.daemon) == ("work", True)


def test_a_generator_that_was_left_open_is_closed_on_the_loop_that_ends():
    """What it holds is released there, and not in the thread of a later collection."""
    ended = []

    async def numbers():
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            ended.append(threading.current_thread().name)

    left_open = numbers()

    async def begin():
        return await anext(left_open)

    thread = LoopThread("loop")
    first = thread.call(begin())
    thread.close()

    assert (first, ended) == (1, ["loop"])


PROGRAM = """
import gc
from eventproc._base.threads import exclude_imports_from_collections
cycle = []
cycle.append(cycle)
del cycle
before = len(gc.get_objects())
exclude_imports_from_collections()
frozen = gc.get_freeze_count()
younger = [[] for _ in range(1000)]
exclude_imports_from_collections()
print(frozen > before // 2, gc.get_freeze_count() == frozen, len(gc.get_objects()) < before)
"""


def test_what_exists_at_the_first_call_is_excluded_and_nothing_later():
    """So that what a handler or a task makes is still collected."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["True"] * 3
