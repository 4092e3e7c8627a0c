"""Work in a thread: it begins with its block, and is asked to end with it."""

import threading

from eventproc._base.tasks import Background


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
