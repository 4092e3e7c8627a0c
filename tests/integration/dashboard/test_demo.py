"""``eventproc demo`` as it is seen on the page: a join, a kill and a freeze as they happen."""

import asyncio
import math
import os
import sys
from contextlib import asynccontextmanager, contextmanager

import pytest

from eventproc.cli.demo.hub import HubStage
from eventproc.cli.demo.processors import story
from eventproc.cli.demo.processors.scene import ChangeKind
from eventproc.cli.demo.processors.story import DemoRun
from eventproc.cli.demo.stage import EXPIRATION_S, StoreChoice
from eventproc.concurrency.tasks import end
from tests.integration.dashboard.browser import looking_at, owner_colour, shown, until_pictured

PARTITIONS = 8


@asynccontextmanager
async def page_of(stage):
    """Yield the URL of the page of the demo's group."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "eventproc.cli", "dashboard", "--store", stage.note.spec,
        "--expiration", f"{EXPIRATION_S}s", "--every", "0.3s", "--http", "0",
        env=os.environ | stage.environment, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.terminate()
        assert await process.wait() == 0


class Changes:
    """The changes of the demo, as it shows them."""

    def __init__(self):
        self._seen = {}
        self._owners = {}
        self._changed = asyncio.Condition()
        self._tasks = set()

    def show(self, scene):
        """Take a scene of the demo."""
        self._seen = {(change.kind, n): change.processors for n, change in enumerate(scene.changes)}
        self._owners = {p.partition_id: p.owner_id for p in scene.partitions}
        task = asyncio.ensure_future(self._notify())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _notify(self):
        async with self._changed:
            self._changed.notify_all()

    async def processor(self, kind, nth=1):
        """Wait for the nth change of this kind; return its processor."""
        async with self._changed:
            while len(found := [name for (k, _), name in self._seen.items() if k is kind]) < nth:
                await self._changed.wait()
        return found[nth - 1]

    def partition_of(self, owner_id):
        """Return a partition that this processor has."""
        return next(p for p, owner in self._owners.items() if owner == owner_id)


@contextmanager
def held(monkeypatch):
    """Hold the demo at its present change: a busy machine may read the page late."""
    with monkeypatch.context() as patch:
        patch.setattr(story, "BALANCED_FOR_S", math.inf)
        yield


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("store", [StoreChoice.SQLITE, StoreChoice.AZURITE])
async def test_the_demo_is_seen_as_it_happens(store, monkeypatch):
    """In the log, in the members' table and in the picture, before the demo goes on."""
    changes = Changes()
    stage = HubStage(partition_count=PARTITIONS, store=store, print_line=print)
    async with stage:
        run = DemoRun(stage, event_count=20_000, processor_count=2, show=changes.show)
        playing = asyncio.ensure_future(run.play())
        try:
            first = await changes.processor(ChangeKind.START)
            async with page_of(stage) as url, looking_at(url) as page:
                await shown(page, "#members tbody th", first)
                joined = await changes.processor(ChangeKind.JOIN, nth=2)
                await shown(page, "#log li[data-kind=joined]", f"{joined} joined")
                row = int(changes.partition_of(first))
                await until_pictured(page, row, PARTITIONS, await owner_colour(page, first))

                killed = await changes.processor(ChangeKind.KILL)
                with held(monkeypatch):
                    silent = f"#members tr:has(.owner .name:text-is('{killed}'))"
                    await shown(page, silent, "not renewing")
                    await shown(page, "#log li[data-kind=died]", f"{killed} has not renewed")
                await shown(page, "#log li[data-kind='taken over']", f"of {killed}, which")

                frozen = await changes.processor(ChangeKind.FREEZE)
                with held(monkeypatch):
                    await shown(page, "#log li[data-kind=died]", f"{frozen} has not renewed")
                await changes.processor(ChangeKind.THAW)
                await shown(page, "#log li:is([data-kind=joined], [data-kind=returned])", frozen)
                await shown(page, "#headline", "in good order")
        finally:
            if not playing.done():
                await end([playing])
