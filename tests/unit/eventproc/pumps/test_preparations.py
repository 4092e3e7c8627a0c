"""Preparing handlers: in threads too, and only if they define ``prepare``."""

import threading
from random import Random
from typing import Any

from eventproc import Backoff, BlockingResourceHandler, ResourceHandler
from eventproc.logs import get_logger
from eventproc.pumps.preparations import Preparations
from eventproc.retries import waits


class StubWork:
    """Makes handlers of one class."""

    handler_kinds = (ResourceHandler, BlockingResourceHandler)

    def __init__(self, make):
        self.make_handler = make

    def shown(self, name):
        """Return the name in capitals."""
        return name.upper()


def preparations_of(make) -> Preparations:
    """Preparations of handlers that a function makes."""
    work: Any = StubWork(make)
    return Preparations(work, waits(Backoff(), Random(0)), get_logger("test"))


def nobodys(_):
    """Nothing is held or planned."""
    return False


async def test_a_blocking_handler_is_prepared_and_discarded_in_threads():
    """With the name that users know; closing waits for both."""
    seen = []
    prepared = threading.Event()

    class Slow(BlockingResourceHandler):
        def prepare(self, name):
            seen.append(("prepare", name, threading.current_thread().name))
            prepared.wait()

        def discard(self, name):
            seen.append(("discard", name, threading.current_thread().name))

    preparations = preparations_of(Slow)
    preparations.adjust({"a"}, nobodys)
    preparations.adjust({"a"}, nobodys)
    prepared.set()
    await preparations.close()

    assert [call[:2] for call in seen] in (
        [("prepare", "A"), ("discard", "A")],
        [("discard", "A")],  # Discarded before the thread began.
    )
    assert all(thread == "eventproc-prepare" for *_, thread in seen)


async def test_handlers_without_prepare_are_made_once_to_find_out():
    """Nothing is taken, and nothing discarded."""
    made = []

    def make():
        made.append(ResourceHandler())
        return made[-1]

    preparations = preparations_of(make)
    preparations.adjust({"a", "b"}, nobodys)
    preparations.adjust({"a", "b", "c"}, nobodys)

    assert len(made) == 1
    assert preparations.take("a") is None
    await preparations.close()


async def test_a_handler_that_cannot_be_made_is_made_again_by_the_next_cycle(caplog):
    """The error is logged."""
    made = []

    class Quick(ResourceHandler):
        async def prepare(self, name):
            """Do nothing."""

    def make():
        made.append(1)
        if len(made) == 1:
            raise OSError("no memory")
        return Quick()

    preparations = preparations_of(make)
    preparations.adjust({"a"}, nobodys)
    preparations.adjust({"a"}, nobodys)
    taken = preparations.take("a")

    assert taken is not None
    assert isinstance(taken[0], Quick)
    assert "no memory" in caplog.text
    await preparations.close()
