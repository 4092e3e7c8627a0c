"""A report for each night, written by one process of a service, whichever of them run.

Beside its `EventProcessor` each process has a `ResourceProcessor` with one name. The process that
holds the name writes the reports. When it stops, another one goes on.
"""

import asyncio
import tempfile
from datetime import timedelta

from orders import OrderHandler

import eventproc
from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc.sources.memory import MemoryEventSource, MemoryHub

hub, names = MemoryHub(4), eventproc.Resources(["nightly-report"])
quick = eventproc.EventProcessorConfig(load_balancing_interval=timedelta(seconds=0.5))
jobs = eventproc.ResourceProcessorConfig(load_balancing_interval=timedelta(seconds=0.5))
nights = {night: asyncio.Event() for night in ("2026-01-30", "2026-01-31", "2026-02-01")}
writer_by_night: dict[str, str] = {}
written: asyncio.Queue[str] = asyncio.Queue()


class Report(eventproc.ResourceHandler):
    """Runs in the process that holds the name, until that process stops or loses it."""

    async def hold(self, held: eventproc.HeldResource) -> None:
        """Write each report that is not there yet, in a transaction that says so."""
        for night, two_o_clock in nights.items():
            await two_o_clock.wait()
            if night not in writer_by_night:  # Elsewhere also: and no later `held.epoch` wrote.
                written.put_nowait(writer_by_night.setdefault(night, held.owner_id))
        await asyncio.Event().wait()  # Elsewhere there are always more nights.


async def process(name: str, file: str) -> None:
    """Run what each process of the service runs."""
    source, store = MemoryEventSource(hub), SqliteCheckpointStore(file)
    feed = eventproc.EventProcessor(source=source, store=store, handler=OrderHandler, config=quick)
    store = SqliteCheckpointStore(file)
    job = eventproc.ResourceProcessor(
        resources=names, store=store, group="jobs", handler=Report, owner_id=name, config=jobs
    )
    async with feed, job:
        await job.finished()


async def main(file: str) -> None:
    async with asyncio.TaskGroup() as group:
        running = {name: group.create_task(process(name, file)) for name in "abc"}
        for two_o_clock in nights.values():
            two_o_clock.set()
            (writer := running[await written.get()]).cancel()
            await asyncio.wait([writer])
    print(len(set(writer_by_night.values())), "writers of", len(nights), "reports")


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(f"{folder}/group.db"))
