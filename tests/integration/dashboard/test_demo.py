"""``eventproc demo`` as it is seen on its page: a join, a kill and a freeze as they happen."""

import asyncio
import math
import re
from contextlib import contextmanager

import pytest

from eventproc._base.tasks import end
from eventproc._command.demo import run as demo_run
from eventproc._command.demo.group import StoreChoice, open_group
from eventproc._command.demo.run import DemoRun
from tests.integration.dashboard.browser import looking_at, owner_colour, shown, until_pictured

PARTITIONS = 8


class Lines:
    """What the demo says."""

    def __init__(self):
        self._text = ""
        self._is_new = asyncio.Event()

    def say(self, line):
        """Take a line of the demo."""
        self._text += f"{line}\n"
        self._is_new.set()

    async def until(self, pattern):
        """Wait until the demo has said this; return the group of the pattern."""
        while (found := re.search(pattern, self._text, re.DOTALL)) is None:
            self._is_new.clear()
            await self._is_new.wait()
        return found[1]


@contextmanager
def held(monkeypatch):
    """Hold the demo at its present change: a busy machine may read the page late."""
    with monkeypatch.context() as patch:
        patch.setattr(demo_run, "BALANCED_FOR_S", math.inf)
        yield


@pytest.mark.long
async def test_the_demo_is_seen_as_it_happens(monkeypatch):
    """In the log, in the members' table and in the picture, before the demo goes on."""
    lines = Lines()
    async with open_group(PARTITIONS, StoreChoice.AZURITE, lines.say) as group:
        run = DemoRun(group, event_count=20_000, processor_count=2, say=lines.say)
        playing = asyncio.ensure_future(run.run())
        try:
            async with looking_at(await lines.until(r"shows the group: (\S+)")) as page:
                await lines.until("A (starts)")
                await shown(page, "#members tbody th", "A")
                joined = await lines.until("(C) joins")
                await shown(page, "#log li[data-kind=joined]", f"{joined} joined")
                await lines.until("C joins.*(balanced)")
                owned = (await group.store.list_ownership(group.group)).ownerships
                row = next(int(o.partition_id) for o in owned if o.owner_id == "A")
                await until_pictured(page, row, PARTITIONS, await owner_colour(page, "A"))

                killed = await lines.until(r"(\w) is killed")
                with held(monkeypatch):
                    silent = f"#members tr:has(.owner .name:text-is('{killed}'))"
                    await shown(page, silent, "not renewing")
                    await shown(page, "#log li[data-kind=died]", f"{killed} has not renewed")
                await shown(page, "#log li[data-kind='taken over']", f"of {killed}, which")

                frozen = await lines.until(r"(\w) is frozen")
                with held(monkeypatch):
                    await shown(page, "#log li[data-kind=died]", f"{frozen} has not renewed")
                await lines.until(r"(\w) continues")
                with held(monkeypatch):
                    back = "#log li:is([data-kind=joined], [data-kind=returned])"
                    await shown(page, back, frozen)
                    await shown(page, "#headline", "in good order")
        finally:
            if not playing.done():
                await end([playing])
