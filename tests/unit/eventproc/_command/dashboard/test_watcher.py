"""The group is read once for all browsers, and not at all while no browser looks."""

import asyncio
import json
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta

from eventproc._base.tasks import end
from eventproc._command.dashboard.watcher import Watcher
from eventproc.errors import SourceUnavailableError, StoreUnavailableError
from eventproc.testing._virtual_time import VirtualTimeLoop
from tests.unit.eventproc._core.watching.readings import RULES, group, partition


class Group:
    """A group whose owner alternates; it counts its readings."""

    def __init__(self):
        self.readings = 0
        self.error = None
        self.hub_failure = None

    async def read(self, _):
        self.readings += 1
        if self.error is not None:
            raise self.error
        at_s = asyncio.get_running_loop().time()
        return group(at_s, [partition("0", "ab"[self.readings % 2])])


@asynccontextmanager
async def watching(read, every=timedelta(seconds=2)):
    """Yield a watcher that runs."""
    watcher = Watcher(
        read.read,
        RULES,
        every=every,
        hub_failure=lambda: read.hub_failure,
        clock=asyncio.get_running_loop().time,
    )
    running = asyncio.create_task(watcher.run())
    try:
        yield watcher
    finally:
        await end([running])


async def message(stream):
    """Return the next message of a stream, as JSON."""
    while True:
        piece = await anext(stream)
        if piece.startswith(b"data: "):
            return json.loads(piece.removeprefix(b"data: "))


def on_virtual_time(main):
    """Run a coroutine function in a loop whose time jumps."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())


def test_nothing_is_read_while_no_browser_looks():
    """Neither before the first browser nor after the last."""

    async def main():
        read = Group()
        async with watching(read) as watcher:
            await asyncio.sleep(100)
            before = read.readings
            async with aclosing(watcher.messages()) as stream:
                await message(stream)
            during = read.readings
            await asyncio.sleep(100)

            assert (before, during, read.readings) == (0, 1, 1)

    on_virtual_time(main)


def test_many_browsers_cost_as_much_as_one():
    """Each gets every reading."""

    async def main():
        read = Group()
        async with watching(read) as watcher:
            streams = [watcher.messages() for _ in range(20)]
            for number in (1, 2, 3):
                found = await asyncio.gather(*(message(stream) for stream in streams))
                assert {each["group"]["number"] for each in found} == {number}
            for stream in streams:
                await stream.aclose()

        assert read.readings == 3

    on_virtual_time(main)


def test_a_browser_that_leaves_does_not_end_the_readings_of_the_others():
    """Their pages would stand still, and look as if nothing happened."""

    async def main():
        read = Group()
        async with watching(read) as watcher, aclosing(watcher.messages()) as stays:
            async with aclosing(watcher.messages()) as leaves:
                await asyncio.gather(message(stays), message(leaves))
            async with asyncio.timeout(60):
                found = [(await message(stays))["group"]["number"] for _ in range(2)]

        assert found == [2, 3]

    on_virtual_time(main)


def test_a_browser_that_comes_later_gets_everything_at_once():
    """And then what is added."""

    async def main():
        async with watching(Group()) as watcher:
            async with aclosing(watcher.messages()) as first, aclosing(watcher.messages()) as late:
                for _ in range(3):
                    await message(first)
                whole = await message(late)
                added = await message(late)

        assert (whole["group"]["is_whole"], len(whole["group"]["moves"])) == (True, 3 * 4)
        assert (added["group"]["is_whole"], len(added["group"]["moves"])) == (False, 4)

    on_virtual_time(main)


def test_a_browser_that_is_slow_misses_messages_and_no_change():
    """The next one has all that was added meanwhile."""

    async def main():
        async with watching(Group()) as watcher, aclosing(watcher.messages()) as stream:
            await message(stream)
            await asyncio.sleep(20)
            found = await message(stream)

        assert found["group"]["number"] > 5
        assert len(found["group"]["moves"]) == 4 * (found["group"]["number"] - 1)

    on_virtual_time(main)


def test_a_store_that_does_not_answer_is_a_message_and_its_end_another():
    """The last state is kept, and the log says both."""

    async def main():
        read = Group()
        async with watching(read) as watcher, aclosing(watcher.messages()) as stream:
            await message(stream)
            read.error = StoreUnavailableError("time-out\nof the store")
            failed = await message(stream)
            still = await message(stream)
            read.error = None
            recovered = await message(stream)

        assert failed["problem"] == "The store did not answer for 0 s: time-out of the store"
        assert still["problem"] == "The store did not answer for 2 s: time-out of the store"
        assert failed["group"]["number"] == 1
        assert recovered["problem"] is None
        assert [e["kind"] for e in recovered["group"]["log"]][:2] == ["no answer", "answers again"]

    on_virtual_time(main)


def test_a_hub_that_does_not_answer_leaves_what_the_store_says():
    """Owners and members are new."""

    async def main():
        read = Group()
        read.hub_failure = SourceUnavailableError("time-out")
        async with watching(read) as watcher, aclosing(watcher.messages()) as stream:
            found = await message(stream)

        assert found["problem"] == "The hub did not answer for 0 s: time-out"
        assert found["group"]["number"] == 1

    on_virtual_time(main)


def test_a_stream_without_news_is_kept_alive():
    """A proxy would close it."""

    async def main():
        every = timedelta(seconds=100)
        async with watching(Group(), every) as watcher, aclosing(watcher.messages()) as stream:
            first, second = await anext(stream), await anext(stream)

        assert first.startswith(b"data: ")
        assert second == b": still here\n\n"

    on_virtual_time(main)
