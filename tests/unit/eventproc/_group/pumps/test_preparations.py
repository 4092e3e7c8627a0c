"""Preparing handlers: in threads too, and only if they define ``prepare``."""

import asyncio
import threading
from random import Random
from typing import Any

import pytest

from eventproc import Backoff, BlockingResourceHandler, ResourceHandler
from eventproc._base.logs import get_logger
from eventproc._base.retries import waits
from eventproc._group.pumps.preparations import Preparations
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import seconds


class StubWork:
    """Makes handlers of one class."""

    handler_kinds = (ResourceHandler, BlockingResourceHandler)

    def __init__(self, make):
        self.make_handler = make

    def display_name(self, name):
        """Return the name in capitals."""
        return name.upper()


def stub_work(make) -> Any:
    """Work whose handlers a function makes."""
    return StubWork(make)


def preparations_of(make) -> Preparations:
    """Preparations of handlers that a function makes."""
    return Preparations(stub_work(make), waits(Backoff(), Random(0)), get_logger("test"))


class Noting(ResourceHandler):
    """Notes its calls; a test says how long they take, and how often they fail."""

    def __init__(self):
        self.calls = []
        self.prepare_s = self.close_s = 0.0
        self.errors = []

    async def prepare(self, name):
        """Prepare as the test says."""
        self.calls.append("prepare")
        if self.errors:
            raise self.errors.pop(0)
        try:
            await seconds(self.prepare_s)
        except asyncio.CancelledError:
            await seconds(self.close_s)
            self.calls.append("closed")
            raise
        self.calls.append("ready")

    async def discard(self, name):
        """Discard."""
        self.calls.append("discard")
        if self.errors:
            raise self.errors.pop(0)


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
    assert preparations.ready == ()
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

    assert len(made) == 2
    assert isinstance(preparations.take("a")[0], Quick)
    assert "no memory" in caplog.text
    await preparations.close()


async def test_what_is_ready_is_known_until_it_is_taken_or_discarded():
    """What is held is not prepared, although this processor is planned to be its backup."""
    preparations = preparations_of(Noting)
    preparations.adjust({"a", "b", "c"}, {"c"}.__contains__)
    before = preparations.ready
    await seconds(1)
    ready = preparations.ready
    preparations.take("a")
    preparations.adjust({"a"}, {"a"}.__contains__)
    after = preparations.ready
    await preparations.close()

    assert (before, ready, after, preparations.ready) == ((), ("a", "b"), (), ())


async def test_what_is_planned_for_this_processor_is_kept_although_it_is_no_backup_any_more():
    """Its owner has not let it go yet."""
    preparations = preparations_of(Noting)
    preparations.adjust({"a"}, nobodys)
    await seconds(1)
    preparations.adjust((), {"a"}.__contains__)
    handler, _ = preparations.take("a")
    await preparations.close()

    assert handler.calls == ["prepare", "ready"]  # type: ignore[attr-defined]


async def test_a_failing_preparation_is_called_again_after_longer_and_longer_waits(caplog):
    """A ``CancelledError`` of the user's own is a failure, too."""
    handler = Noting()
    handler.errors = [OSError("no route"), asyncio.CancelledError(), OSError("again")]
    preparations = Preparations(
        stub_work(lambda: handler), lambda count: 10.0 * count, get_logger("test")
    )
    preparations.adjust({"a"}, nobodys)
    counts = []
    for after_s in (5, 10, 10, 10, 10, 10, 10):
        await seconds(after_s)
        counts.append(handler.calls.count("prepare"))
    await preparations.close()

    assert counts == [1, 2, 2, 3, 3, 3, 4]
    assert "again" in caplog.text


def test_the_log_names_handlers_as_users_do(caplog):
    """When one could not be prepared, and when it is."""

    async def scenario():
        handler = Noting()
        handler.errors = [OSError("no route")]
        preparations = preparations_of(lambda: handler)
        preparations.adjust({"a"}, nobodys)
        await seconds(60)
        preparations.adjust((), nobodys)
        await preparations.close()
        return len(preparations._discarding)

    caplog.set_level("INFO")
    left_count = run_virtual(scenario())
    logged = [(vars(r).get("event"), vars(r).get("handler_of")) for r in caplog.records]

    assert logged == [("prepare_failed", "A"), ("handler_prepared", "A")]
    assert left_count == 0, "a discarded handler is kept"


async def test_a_preparation_under_way_ends_before_it_is_discarded(caplog):
    """``close`` waits for both; an error of ``discard`` is logged."""
    handler = Noting()
    handler.prepare_s, handler.close_s = 100.0, 5.0
    preparations = preparations_of(lambda: handler)
    preparations.adjust({"a"}, nobodys)
    await seconds(1)
    handler.errors = [OSError("cannot discard")]
    preparations.adjust((), nobodys)
    await preparations.close()

    assert (handler.calls, asyncio.get_running_loop().time()) == (
        ["prepare", "closed", "discard"],
        6.0,
    )
    assert "cannot discard" in caplog.text


@pytest.mark.real_time
async def test_a_thread_that_still_prepares_is_waited_for():
    """Its handler serves only when it has returned."""
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    class Slow(BlockingResourceHandler):
        def prepare(self, name):
            begun.set()
            may_end.wait()
            ended.set()

    preparations = preparations_of(Slow)
    preparations.adjust({"a"}, nobodys)
    await asyncio.to_thread(begun.wait)
    _, until_ready = preparations.take("a")
    ready = asyncio.ensure_future(until_ready())
    await asyncio.wait([ready], timeout=0.05)
    was_done = ready.done()
    may_end.set()
    await ready

    assert not was_done
    assert ended.is_set()
