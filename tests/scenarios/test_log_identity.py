"""Whose a log line is: the first one of a processor says it; with two, each line does."""

import asyncio
import logging
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

from checkpointstores.memory import MemoryCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import (
    EventProcessor,
    EventProcessorConfig,
    ResourceHandler,
    ResourceProcessor,
    Resources,
)
from eventproc._base.logs import TextLines, get_logger
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from tests.scenarios.group_setup import Setup, seconds
from tests.scenarios.test_forks import QUICK, Idle

GROUP_FIELDS = ("fully_qualified_namespace", "eventhub_name", "consumer_group", "owner_id")


class LoggingSource(MemoryEventSource):
    """A source with a logger of its own module, which knows no processor."""

    async def open(self):
        """Log, and start a task that does."""
        get_logger("eventproc.sources.x").info("link_opened")
        self._logging = asyncio.create_task(self._log_later())
        await super().open()

    async def close(self):
        """Log."""
        await self._logging
        get_logger("eventproc.sources.x").info("link_closed")
        await super().close()

    async def _log_later(self):
        get_logger("eventproc.sources.x").info("link_recovered")


async def until(condition):
    """Return when the condition holds."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.02)


def locked(path):
    """Take the file's write lock."""
    db = sqlite3.connect(path, check_same_thread=False)
    db.execute("BEGIN IMMEDIATE")
    return db


@pytest.mark.real_time
async def test_every_line_of_a_program_with_two_processors_names_its_processor(caplog, tmp_path):
    """Also those of stores and sources, from their tasks and threads, in text and as fields."""
    caplog.set_level(logging.DEBUG, "eventproc")

    def processor(hub):
        store = SqliteCheckpointStore(tmp_path / hub, busy_timeout=timedelta(seconds=0.05))
        source = LoggingSource(MemoryHub(1, name=hub))
        config = replace(QUICK, ownership_expiration=timedelta(seconds=1))
        return EventProcessor(source=source, store=store, handler=Idle, config=config)

    def lines():
        return [each for each in caplog.records if each.name.startswith("eventproc")]

    processors = {hub: processor(hub) for hub in ("orders", "payments")}
    async with processors["orders"], processors["payments"]:
        await until(lambda: sum(each.event == "partition_started" for each in lines()) > 1)
        first = lines()[0]
        caplog.clear()
        for hub in processors:
            with closing(await asyncio.to_thread(locked, tmp_path / hub)):
                known = len(lines())
                await until(
                    lambda n=known: any(e.event == "store_write_unknown" for e in lines()[n:])
                )
        ids = {hub: each.owner_id for hub, each in processors.items()}

    events = {(each.event, each.eventhub_name) for each in lines()}
    text = [TextLines().format(each) for each in lines()]
    assert first.event == "processor_starting"
    assert {("link_closed", hub) for hub in ids} <= events
    assert {("store_write_unknown", hub) for hub in ids} <= events
    assert all(each.owner_id == ids[each.eventhub_name] for each in lines())
    assert all(
        f" {name}={getattr(record, name)}" in line
        for record, line in zip(lines(), text, strict=True)
        for name in GROUP_FIELDS
    )


async def test_the_first_line_says_what_the_others_of_a_lone_processor_leave_out(caplog):
    """Hub, group, owner id, store, placement and expiration; as fields they are on each line."""
    caplog.set_level(logging.INFO, "eventproc")
    setup = Setup(1)
    processor = EventProcessor(
        source=LoggingSource(setup.hub),
        store=MemoryCheckpointStore(setup.account),
        handler=Idle,
        consumer_group="audit",
        owner_id="host-1",
        config=EventProcessorConfig(uses_store_thread=False),
    )
    async with processor:
        await seconds(1)

    first, *others = [each for each in caplog.records if each.name.startswith("eventproc")]

    assert first.getMessage() == (
        "processor_starting fully_qualified_namespace=memory eventhub_name=hub "
        "consumer_group=audit owner_id=host-1 store=MemoryCheckpointStore() placement=Even "
        "expiration_s=60.0"
    )
    assert {(each.eventhub_name, each.consumer_group, each.owner_id) for each in others} == {
        ("hub", "audit", "host-1")
    }
    lines = [each.getMessage() for each in others]
    assert not [line for line in lines if "owner_id=" in line or "eventhub_name=" in line]


class Hold(ResourceHandler):
    """Holds."""

    async def hold(self, held):
        """Hold until the end."""
        await asyncio.Event().wait()


@pytest.mark.real_time
async def test_the_first_line_of_a_resource_processor_names_its_group(caplog):
    """It has no hub."""
    caplog.set_level(logging.INFO, "eventproc")
    processor = ResourceProcessor(
        resources=Resources(["a"]),
        store=MemoryCheckpointStore(),
        group="licences",
        handler=Hold,
    )
    async with processor:
        owner_id = processor.owner_id

    assert (
        caplog.records[0]
        .getMessage()
        .startswith(f"processor_starting resource_group=licences owner_id={owner_id} store=Memory")
    )
    assert {each.resource_group for each in caplog.records} == {"licences"}
