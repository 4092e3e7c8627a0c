"""Start and stop of a processor: what start refuses, the time limit of stop, starting again."""

import asyncio
import threading
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import (
    ConfigurationError,
    EventPosition,
    EventProcessor,
    EventProcessorConfig,
    Ordinal,
    PartitionHandler,
    ResourceHandler,
    ResourceProcessor,
    Resources,
    SourceUnavailableError,
    StoreRejectedError,
    StoreUnavailableError,
)
from eventproc.health import HealthServer
from eventproc.ports import Transactions
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.telemetry import Telemetry
from eventproc.testing import StoreFaults
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds, source_of, until
from tests.scenarios.loops import in_two_loops

BUDGET = timedelta(seconds=10)
TOLERANCE_S = 0.01


class Hanging(Noting):
    """Its calls never return."""

    async def process_events(self, context, events):
        """Wait for what never comes."""
        await asyncio.Event().wait()


class IgnoringCancellation(Noting):
    """Its calls go on after they were cancelled."""

    async def process_events(self, context, events):
        """Wait again after each cancellation, for ever by any processor's measure."""
        for _ in range(20):
            try:
                await asyncio.sleep(500)
            except asyncio.CancelledError:
                continue
            break


class HangingInClose(Noting):
    """Handles its events; ``close`` never returns."""

    async def close(self, context, reason):
        """Wait for what never comes."""
        await asyncio.Event().wait()


class FailingInClose(Noting):
    """Handles its events; ``close`` raises."""

    async def close(self, context, reason):
        """Break."""
        raise RuntimeError


@pytest.mark.parametrize(
    "kind", [Hanging, IgnoringCancellation, HangingInClose, FailingInClose, Noting]
)
@pytest.mark.parametrize("is_store_out", [False, True])
async def test_stop_keeps_its_time_limit_whatever_handler_and_store_do(kind, is_store_out):
    """It returns within ``shutdown_timeout``. If it can, it checkpoints and releases everything."""
    setup = Setup(3)
    for partition_id in ("0", "1", "2"):
        setup.publish(3, partition_id)
    processor = setup.processor(lambda: kind(setup), shutdown_timeout=BUDGET)
    await processor.start()
    await seconds(5)
    store = setup.store_by_owner["a"]
    store.is_out = is_store_out
    store.faults = StoreFaults(silence=timedelta(seconds=1000 if is_store_out else 0))
    began_s = asyncio.get_running_loop().time()
    await processor.stop()
    took_s = asyncio.get_running_loop().time() - began_s
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if tasks and kind is IgnoringCancellation:
        await asyncio.wait(tasks)

    assert took_s <= BUDGET.total_seconds() + TOLERANCE_S
    if kind in {Noting, FailingInClose} and not is_store_out:
        assert set(setup.owners().values()) == {None}
        assert setup.checkpointed() == 2
        assert setup.account.records(setup.group).member_by_owner == {}


async def test_a_stopped_processor_may_be_started_again():
    """It continues from its checkpoints. Counters can be read until then, and begin at 0 again."""
    setup = Setup(2)
    processor = setup.processor()
    snapshots = [processor.statistics()]
    for _ in range(3):
        setup.publish(2)
        async with processor:
            await seconds(30)
            snapshots.append(processor.statistics())
        snapshots.append(processor.statistics())

    numbers = setup.numbers()

    assert numbers == [0, 1, 2, 3, 4, 5]
    assert [s.counters.handled_count for s in snapshots] == [0, 2, 2, 2, 2, 2, 2]
    assert [s.claim_count for s in snapshots] == [0, 2, 2, 2, 2, 2, 2]
    assert [s.owned for s in snapshots] == [(), ("0", "1"), (), ("0", "1"), (), ("0", "1"), ()]
    assert all(
        after.cycle_count >= before.cycle_count
        for before, after in zip(snapshots[1::2], snapshots[2::2], strict=True)
    )


async def test_a_processor_may_serve_again_in_the_same_event_loop():
    """It does not take the end of the former run for its own."""
    setup = Setup(1)
    processor = setup.processor()
    for _ in range(2):
        setup.publish(2)
        serving = asyncio.create_task(processor.serve())
        await seconds(30)
        assert not serving.done()
        await processor.stop()
        await serving

    assert setup.numbers() == [0, 1, 2, 3]


class Told(PartitionHandler, ResourceHandler):
    """Tells the program that it was called."""

    called: asyncio.Event

    async def process_event(self, context, event):
        """Tell."""
        self.called.set()

    async def hold(self, held):
        """Tell, and hold."""
        self.called.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize("kind", ["events", "resources"])
def test_a_processor_may_be_started_again_in_a_new_event_loop(kind):
    """As each call of ``run`` has one; also with a health server."""
    hub, health = MemoryHub(1), HealthServer("0")
    telemetry = Telemetry(meter_provider=MeterProvider())
    if kind == "events":
        processor: Any = EventProcessor(
            source=MemoryEventSource(hub),
            store=MemoryCheckpointStore(),
            handler=Told,
            config=EventProcessorConfig(initial_position=EventPosition.earliest()),
            health=health,
            telemetry=telemetry,
        )
    else:
        processor = ResourceProcessor(
            resources=Resources(["a"]),
            store=MemoryCheckpointStore(),
            group="group",
            handler=Told,
            health=health,
            telemetry=telemetry,
        )

    async def serve_once():
        Told.called = asyncio.Event()
        hub.publish(b"x")
        serving = asyncio.ensure_future(processor.serve())
        await Told.called.wait()
        await asyncio.gather(processor.stop(), processor.stop(), processor.finished())
        await serving

    asyncio.run(in_two_loops(serve_once))


async def test_starting_a_running_processor_raises_and_stopping_twice_does_nothing():
    """``stop`` may be called before the start, too, and twice at once."""
    processor = Setup().processor()
    await processor.stop()
    await processor.start()
    with pytest.raises(ConfigurationError, match="running"):
        await processor.start()
    await asyncio.gather(processor.stop(), processor.stop())


@pytest.mark.parametrize("what", ["store", "hub", "group"])
async def test_a_failed_start_leaves_nothing_claimed_and_may_be_repeated(what):
    """It raises one clear error, and everything opened is closed."""
    setup = Setup()
    processor = setup.processor()
    expected: type[Exception]
    if what == "store":
        setup.store_by_owner["a"].is_out = True
        expected = StoreUnavailableError
    elif what == "hub":
        setup.hub.begin_outage()
        expected = SourceUnavailableError
    else:
        hub = MemoryHub(1, consumer_groups=["other"])
        processor = EventProcessor(
            source=MemoryEventSource(hub),
            store=MemoryCheckpointStore(setup.account),
            handler=lambda: Noting(setup),
            rng=Random(1),
            config=EventProcessorConfig(uses_store_thread=False),
        )
        expected = ConfigurationError
    with pytest.raises(expected):
        await processor.start()

    assert setup.owners() == {}
    assert len(asyncio.all_tasks()) == 1

    if what != "group":
        setup.store_by_owner["a"].is_out = False
        setup.hub.end_outage()
        setup.publish(1)
        async with processor:
            await seconds(20)
        assert setup.numbers() == [0]


@pytest.mark.parametrize("owner_id", ["", " a", "a\n", "é"])
def test_an_owner_id_that_does_not_fit_into_a_header_is_refused(owner_id):
    """Blob stores send it in one."""
    with pytest.raises(ConfigurationError):
        Setup().processor(owner_id=owner_id)


def test_a_handler_instance_is_refused():
    """A class or a function that makes handlers is needed."""
    setup = Setup()
    with pytest.raises(ConfigurationError, match="handler"):
        setup.processor(Noting(setup))  # type: ignore[arg-type]


async def test_run_inside_an_event_loop_is_refused():
    """The message names ``serve``; nothing is started."""
    processor = Setup().processor()
    with pytest.raises(ConfigurationError, match=r"processor\.serve\(\).*async with processor"):
        processor.run()

    assert processor.statistics().owned == ()


async def test_serve_returns_after_stop():
    """It starts the processor, and serves events until another task stops it."""
    setup = Setup()
    setup.publish(2)
    processor = setup.processor()
    serving = asyncio.ensure_future(processor.serve())
    await seconds(2)
    await processor.stop()
    await serving

    assert (setup.checkpointed(), setup.owners()) == (1, {"0": None})


async def test_a_cancelled_serve_stops_the_processor():
    """The checkpoint is written and the partition is released."""
    setup = Setup()
    setup.publish(2)
    running = asyncio.ensure_future(setup.processor().serve())
    await seconds(2)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert (setup.checkpointed(), setup.owners()) == (1, {"0": None})


async def test_a_handler_that_stops_its_own_processor_does_not_deadlock():
    """Its call is cancelled when ``shutdown_timeout`` is over."""
    setup = Setup()

    class StoppingItself(Noting):
        async def process_events(self, context, events):
            await super().process_events(context, events)
            await processor.stop()

    processor = setup.processor(lambda: StoppingItself(setup), shutdown_timeout=BUDGET)
    setup.publish(1)
    await processor.start()
    await seconds(60)
    await processor.stop()

    assert processor.statistics().owned == ()


def test_the_stores_thread_ends_with_its_processor():
    """In real time, hence short."""

    async def scenario():
        setup = Setup()
        setup.publish(1)
        async with setup.processor(uses_store_thread=True) as processor:
            await until(lambda: setup.handled)
            name = f"eventproc-store-{processor.owner_id}"
            threads = [thread for thread in threading.enumerate() if thread.name == name]
        return setup.checkpointed(), threads

    position, (thread,) = asyncio.run(scenario())
    thread.join(timeout=60)

    assert position == 0
    assert not thread.is_alive()


@pytest.mark.parametrize("error", [ConfigurationError("no CA"), OSError("no descriptor")])
async def test_a_list_of_partitions_that_cannot_be_read_again_ends_no_processor(error, caplog):
    """For example by a new client that misses a file for a moment; the known ones are served."""
    setup = Setup()
    async with setup.processor() as processor:
        await seconds(5)
        ask = source_of(processor).partition_ids

        async def failing():
            raise error

        source_of(processor).partition_ids = failing
        await seconds(300)
        source_of(processor).partition_ids = ask
        setup.hub.grow(2)
        setup.publish(1, "1")
        await seconds(100)

    assert setup.numbers("1") == [0]
    assert "partition_ids_failed" in caplog.text


class NotedTransactions(Transactions):
    """Records when it is opened and closed; nothing begins one."""

    def __init__(self):
        self.calls = []

    async def open(self):
        self.calls.append("open")

    async def close(self):
        self.calls.append("close")

    def begin(self, *, is_blocking, idle_max):
        raise NotImplementedError


async def test_what_begins_transactions_is_opened_and_closed_with_the_processor():
    """Its connection would stay open."""
    transactions = NotedTransactions()

    class Store(MemoryCheckpointStore):
        def transactions(self):
            return transactions

    processor = EventProcessor(
        source=MemoryEventSource(MemoryHub(1)),
        store=Store(),
        handler=lambda: Noting(Setup()),
        config=EventProcessorConfig(uses_store_thread=False),
    )
    for _ in range(2):
        async with processor:
            await seconds(1)

    assert transactions.calls == 2 * ["open", "close"]


async def test_the_log_names_each_step_of_a_life_and_whose_partitions_a_start_waits_for(caplog):
    """A former process that has died looks alive until its leases expire."""
    caplog.set_level("INFO")
    setup = Setup()
    first = asyncio.ensure_future(setup.processor(owner_id="dead").serve())
    await seconds(2)
    setup.store_by_owner["dead"].is_out = True
    first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    caplog.clear()
    async with setup.processor(owner_id="b"):
        await seconds(70)
    events = [record.__dict__["event"] for record in caplog.records]
    (found,) = [r for r in caplog.records if r.__dict__["event"] == "owners_found"]

    steps = ["processor_starting", "processor_started", "owners_found", "partition_claimed"]
    assert [event for event in events if event in steps] == steps
    assert events[-1] == "processor_stopped"
    assert "processor_stopping" in events
    assert (found.owner_ids, found.owned_count, found.expiration_s) == (["dead"], 1, 60)


def test_an_incompatible_processor_leaves_no_member_record():
    """Other members would plan partitions for it until the record expires."""

    async def scenario():
        setup = Setup()
        first = setup.processor(owner_id="a-0", placement=Ordinal())
        second = setup.processor(owner_id="a-1", placement=Ordinal())
        unnumbered = setup.processor(owner_id="b")
        async with first, second:
            await seconds(5)
            with pytest.raises(ConfigurationError, match="ordinal"):
                await unnumbered.start()
            return list(setup.account.records(setup.group).member_by_owner)

    assert run_virtual(scenario()) == ["a-0", "a-1"]


def test_a_store_that_rejects_the_start_is_closed_with_the_source(monkeypatch):
    """For example because the credential lacks a right. No connection stays open."""
    closed = []

    async def scenario():
        processor = Setup().processor()
        parts = processor._parts

        async def reject(*_):
            raise StoreRejectedError("no right to list")

        source: Any = source_of(processor)
        for part in (parts.store, source):
            monkeypatch.setattr(part, "close", recording(part.close, part))
        monkeypatch.setattr(parts.store, "list_members", reject)
        with pytest.raises(ConfigurationError, match="no right to list"):
            await processor.start()
        return [source, parts.store]

    def recording(close, part):
        async def close_recorded():
            closed.append(part)
            await close()

        return close_recorded

    assert run_virtual(scenario()) == closed
