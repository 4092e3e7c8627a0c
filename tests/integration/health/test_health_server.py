"""``HealthServer`` beside real processors, asked over real sockets. In real time, hence short."""

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import prometheus_client
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader
from prometheus_client.parser import text_string_to_metric_families

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import (
    ConfigurationError,
    FailurePolicy,
    PartitionHandler,
    ResourceHandler,
    ResourceProcessor,
    Resources,
)
from eventproc._base.http.client import fetch
from eventproc.health import HealthServer
from eventproc.ports import ForwardingStore
from eventproc.telemetry import Telemetry
from tests.integration.health.health_setup import LONG, Setup
from tests.scenarios.group_setup import source_of, until


class GatedStore(ForwardingStore):
    """Opens, and answers, when it is let."""

    def __init__(self):
        super().__init__(MemoryCheckpointStore())
        self.gate = threading.Event()
        self.gate.set()

    async def open(self):
        """Wait for the gate."""
        await asyncio.to_thread(self.gate.wait, 30)
        await super().open()


async def test_a_handler_that_hangs_makes_its_partition_red_and_nothing_else():
    """The processor is live and ready: a restart is the operator's choice."""
    setup = Setup()
    goes_on = asyncio.Event()

    class Hanging(PartitionHandler):
        async def process_event(self, context, event):
            await goes_on.wait()

    async with setup.processor(Hanging, stall_timeout=timedelta(seconds=0.3)):
        await setup.serves()
        setup.hub.publish(b"", partition_id="1")
        entry = await setup.becomes("/partitions", 503)
        # It may be red before the event is found at which the call hangs.
        while entry["partitions"][1]["stalled_sequence_number"] is None:
            entry = await setup.entry("/partitions")
        others = [(await setup.ask(path)).status for path in ("/live", "/ready", "/status")]
        goes_on.set()
        after = await setup.becomes("/partitions", 200)

    assert [(p["name"], p["ok"]) for p in entry["partitions"]] == [("0", True), ("1", False)]
    (reason,) = entry["reasons"]
    assert reason.startswith("1: a call of the handler has completed nothing for ")
    assert reason.endswith(" s, at event 0")
    assert entry["partitions"][1]["stalled_sequence_number"] == 0
    assert entry["partitions"][1]["call_s"] >= 0.3
    assert others == [200, 200, 200]
    assert [p["is_stalled"] for p in after["partitions"]] == [False, False]


async def test_a_blocked_event_loop_is_not_live_and_the_answer_says_where(caplog):
    """Its partition is red, too. The thread of the server answers meanwhile, and logs once."""
    caplog.set_level(logging.INFO, "eventproc.health")
    setup = Setup(live_within=timedelta(seconds=2))
    seen = []

    class Blocking(PartitionHandler):
        async def process_event(self, context, event):
            # Not ``sleep``: the test goes on as soon as both answers are red.
            asked.wait(30)

    asked = threading.Event()

    def ask():
        async def both():
            seen.append(await setup.becomes("/live", 503))
            assert (await setup.ask("/ready")).status == 503
            seen.append(await setup.becomes("/partitions", 503))

        asyncio.run(both())
        asked.set()

    async with setup.processor(Blocking, stall_timeout=timedelta(seconds=0.3)):
        await setup.serves()
        setup.hub.publish(b"", partition_id="1")
        await asyncio.to_thread(ask)
        after = await setup.becomes("/live", 200)
        # The answer may be there before the line of the log.
        while len(events := [r for r in caplog.records if hasattr(r, "blocked_thread")]) < 2:
            await asyncio.to_thread(time.sleep, 0.01)
    live, partitions = seen

    assert live["event_loop_silent_s"] >= 2
    assert live["store_thread_silent_s"] < 2
    assert "test_health_server.py:" in live["reasons"][0]
    assert " in process_event" in live["reasons"][0]
    assert [p["ok"] for p in partitions["partitions"]] == [True, False]
    assert after["reasons"] == []
    assert [(r.event, r.levelname) for r in events] == [
        ("thread_blocked", "WARNING"),
        ("thread_recovered", "INFO"),
    ]


async def test_a_blocked_store_thread_is_not_live():
    """No lease is renewed meanwhile."""
    setup = Setup(live_within=timedelta(seconds=2))
    released = threading.Event()

    class BlockingStore(ForwardingStore):
        is_blocking = False

        async def list_members(self, group):
            if self.is_blocking:
                released.wait(30)
            return await super().list_members(group)

    store = BlockingStore(MemoryCheckpointStore())
    async with setup.processor(store=store):
        await setup.becomes("/live", 200)
        store.is_blocking = True
        entry = await setup.becomes("/live", 503)
        store.is_blocking = False
        released.set()
        await setup.becomes("/live", 200)

    assert entry["event_loop_silent_s"] < 2
    assert entry["reasons"][0].startswith("the store thread has not run for ")
    assert " in list_members" in entry["reasons"][0]


async def test_a_store_that_is_away_is_no_reason_to_restart():
    """When the leases have ended, the processor serves nothing, so it is not ready; it is live."""
    setup = Setup()
    store = GatedStore()

    async def away(*_: object) -> Any:
        await asyncio.sleep(30)

    async with setup.processor(store=store, ownership_expiration=timedelta(seconds=1)):
        await setup.serves()
        calls = ("list_members", "list_ownership", "claim_ownership", "renew_ownership")
        for name in calls:
            setattr(store, name, away)
        entry = await setup.becomes("/ready", 503)
        while len(entry["reasons"]) < 2:  # One lease may end a moment after the other.
            entry = await setup.entry("/ready")
        live = (await setup.ask("/live")).status
        for name in calls:
            with suppress(AttributeError):
                delattr(store, name)

    assert entry["reasons"] == [
        f"partition {p} is not served: the store has not confirmed its lease in time" for p in "01"
    ]
    assert live == 200


async def test_a_processor_answers_while_it_starts_and_while_it_drains():
    """Live and not ready; after the stop nothing is served."""
    setup, store = Setup(), GatedStore()
    called, goes_on = asyncio.Event(), asyncio.Event()

    class Slow(PartitionHandler):
        async def process_event(self, context, event):
            called.set()
            await goes_on.wait()

    store.gate.clear()
    processor = setup.processor(Slow, store=store)
    starting = asyncio.create_task(processor.start())
    while setup.health.address is None:  # noqa: ASYNC110 - the start tells nobody
        await asyncio.sleep(0.01)
    at_start = [await setup.becomes(*each) for each in (("/ready", 503), ("/live", 200))]
    store.gate.set()
    await starting
    setup.hub.publish(b"", partition_id="0")
    await called.wait()
    stopping = asyncio.create_task(processor.stop())
    at_end = [await setup.becomes(*each) for each in (("/ready", 503), ("/live", 200))]
    goes_on.set()
    await stopping

    assert [entry["reasons"] for entry in (*at_start, *at_end)] == [
        ["starting: it waits for the store to answer"],
        [],
        ["stopping"],
        [],
    ]
    assert setup.health.address is None


async def test_a_pause_is_ready_and_a_stop_by_the_failure_policy_is_not():
    """The first is somebody's choice."""
    setup = Setup()

    class Failing(PartitionHandler):
        async def process_event(self, context, event):
            raise RuntimeError

    async with setup.processor(Failing, failure_policy=FailurePolicy(attempts_max=1)) as processor:
        await setup.serves()
        processor.pause("0")
        paused = await setup.becomes("/partitions", 200)
        ready = (await setup.ask("/ready")).status
        setup.hub.publish(b"", partition_id="1")
        stopped = await setup.becomes("/ready", 503)

    assert [p["is_paused"] for p in paused["partitions"]] == [True, False]
    assert ready == 200
    assert stopped["reasons"] == [
        (
            "partition 1 is not served: the failure policy stopped it: restart, skip the event "
            "(eventproc checkpoints reset), or processor.resume"
        )
    ]


async def test_a_standby_is_ready():
    """Otherwise a rolling deployment would wait for it, and it for the deployment."""
    setup, store = Setup(), MemoryCheckpointStore()
    other = Setup()
    async with setup.processor(store=store, deployment_id="1"):
        await setup.serves()
        async with other.processor(
            store=MemoryCheckpointStore(store.account), owner_id="b", deployment_id="2"
        ) as standby:
            entry = await other.becomes("/ready", 200)
            owned = standby.statistics().owned

    assert (entry["phase"], owned) == ("serving", ())


async def test_processors_of_one_process_share_a_server():
    """An answer has an entry for each; the server ends with the last one."""
    setup = Setup()

    class Failing(ResourceHandler):
        async def hold(self, held):
            raise RuntimeError("hunter2")

    resources = ResourceProcessor(
        resources=Resources(["a/1"]),
        store=MemoryCheckpointStore(),
        group="keys",
        handler=Failing,
        owner_id="b",
        health=setup.health,
        telemetry=setup.telemetry,
    )
    async with setup.processor():
        async with resources:
            async with asyncio.timeout(LONG.total_seconds()):
                answer: Any = (await setup.ask("/partitions")).body
                while "hold has failed" not in str(answer):
                    await asyncio.sleep(0.02)
                    answer = (await setup.ask("/partitions")).body
            status = await setup.ask("/status")
        alone = await setup.becomes("/ready", 200)

    assert [e["owner_id"] for e in answer["processors"]] == ["a", "b"]
    assert [e["ok"] for e in answer["processors"]] == [True, False]
    assert answer["processors"][1]["resource_group"] == "keys"
    assert [p["name"] for p in answer["processors"][1]["partitions"]] == ["a/1"]
    assert "hunter2" not in str(status.body)
    assert alone["owner_id"] == "a"
    assert setup.health.address is None


async def test_metrics_are_those_of_the_processor_and_of_the_program():
    """In the text format of Prometheus. A program may set up an exporter of its own as well."""
    setup = Setup()
    registry_name = "orders_of_this_test"
    own = prometheus_client.Counter(registry_name, "Of the program.")
    own.inc(3)
    try:
        async with setup.processor():
            await setup.serves()
            answer = await setup.ask("/metrics")
            first = {f.name: f for f in text_string_to_metric_families(str(answer.body))}
        async with setup.processor():  # A server that was stopped serves again.
            await setup.serves()
            again = str((await setup.ask("/metrics")).body)
    finally:
        prometheus_client.REGISTRY.unregister(own)

    assert answer.content_type.startswith("text/plain; version=")
    assert first["eventproc_partitions_owned"].samples[0].value == 2
    assert first[registry_name].samples[0].value == 3
    assert "eventproc_cycle_duration_seconds" in first
    assert again.count("# TYPE eventproc_claims_total counter") == 1


def own_threads() -> list[str]:
    """Return the threads of processors and servers."""
    return [t.name for t in threading.enumerate() if t.name.startswith("eventproc-")]


@pytest.mark.smoke
async def test_a_processor_does_not_start_without_its_port():
    """The error names what was given; the next start works, and no thread is left."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        setup = Setup()
        setup.health = HealthServer(str(port), name="--http")
        processor = setup.processor()
        with pytest.raises(ConfigurationError) as refused:
            await processor.start()
        await until(lambda: not own_threads())
    async with processor:
        assert (await setup.ask("/live")).status == 200

    assert str(refused.value) == (
        f"--http 127.0.0.1:{port} cannot be listened on: another process listens there already"
    )


async def test_a_start_that_fails_leaves_no_server():
    """The port is free again."""
    setup = Setup()

    class Refusing(ForwardingStore):
        async def open(self):
            raise ConfigurationError("no")

    processor = setup.processor(store=Refusing(MemoryCheckpointStore()))
    with pytest.raises(ConfigurationError):
        await processor.start()

    assert setup.health.address is None


class ReadProvider(MeterProvider):
    """Knows who reads its metrics."""

    def __init__(self):
        super().__init__()
        self.readers: set[MetricReader] = set()

    def add_metric_reader(self, metric_reader):
        """Note a reader."""
        super().add_metric_reader(metric_reader)
        self.readers.add(metric_reader)

    def remove_metric_reader(self, metric_reader):
        """Forget a reader."""
        super().remove_metric_reader(metric_reader)
        self.readers.discard(metric_reader)


@pytest.mark.smoke
async def test_the_metrics_have_no_reader_after_a_run_whether_or_not_its_stop_was_cancelled():
    """The provider outlives each run, and would keep what every reader has collected."""
    setup, provider, seen = Setup(), ReadProvider(), []
    setup.telemetry = Telemetry(meter_provider=provider)
    processor = setup.processor()
    for _ in range(2):
        async with processor:
            seen.append(len(provider.readers))
        seen.append(len(provider.readers))
    async with processor:
        seen.append(len(provider.readers))
        (member,) = setup.health._watches
        ending = asyncio.ensure_future(setup.health.end(member))
        await asyncio.sleep(0)
        ending.cancel()
        await asyncio.wait([ending])
        seen.append(len(provider.readers))

    assert seen == [1, 0, 1, 0, 1, 0]


def test_a_meter_provider_that_cannot_be_read_is_refused():
    """It is of another implementation than OpenTelemetry's SDK."""
    setup = Setup()
    setup.telemetry.meter_provider = object()  # type: ignore[assignment]

    async def scenario():
        with pytest.raises(ConfigurationError) as refused:
            await setup.processor().start()
        return str(refused.value)

    assert asyncio.run(scenario()) == (
        "the meter provider is a object, whose metrics cannot be read: use the one of "
        "opentelemetry-sdk"
    )


async def test_an_error_in_the_servers_thread_ends_the_server(caplog):
    """A check that does not run must not look healthy."""
    setup = Setup(live_within=timedelta(seconds=0.1))

    async with setup.processor():
        await setup.becomes("/live", 200)
        address = setup.health.address
        assert address is not None
        broken: Callable[..., None] = None  # type: ignore[assignment]
        for watch in setup.health._watches.values():
            watch.beat = broken  # type: ignore[method-assign]
        async with asyncio.timeout(20):
            while await fetch(address, "/live", LONG) is not None:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    assert [r.event for r in caplog.records if r.levelname == "ERROR"] == ["http_server_failed"]


async def test_a_processor_that_has_failed_is_not_live_and_the_answers_name_the_cause():
    """Nobody waits for it here; in an ``async with`` block its error would be raised."""
    setup = Setup(live_within=timedelta(seconds=0.5))
    processor = setup.processor(partition_ids_interval=timedelta(seconds=0.05))
    await processor.start()
    await setup.serves()

    async def fail():
        raise ZeroDivisionError("of the source")

    source_of(processor).partition_ids = fail
    await processor.finished()
    live = await setup.becomes("/live", 503)
    ready = await setup.becomes("/ready", 503)
    with pytest.raises(ZeroDivisionError):
        await processor.stop()

    assert live["reasons"] == ["it has failed: ZeroDivisionError('of the source')"]
    assert ready["reasons"] == live["reasons"]
