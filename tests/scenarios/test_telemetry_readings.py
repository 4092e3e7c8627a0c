"""Counters and gauges that OpenTelemetry's SDK reads from the statistics; on virtual time."""

import asyncio
import sys
import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from eventproc.models import CheckpointResult, ClaimResult, WriteOutcome
from eventproc.telemetry._reporting import Instrumentation
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Noting, seconds
from tests.scenarios.opentelemetry_sdk import Sdk


@pytest.fixture(name="sdk")
def _sdk():
    return Sdk()


async def test_gauges_have_values_for_each_partition_and_for_the_processor(sdk):
    """Lag by partition; owned, served, balanced and the least lease margin by group."""
    setup = sdk.setup(partition_count=2)
    values = {}

    class Stuck(Noting):
        async def process_events(self, context, events):
            if context.partition_id == "1":
                await context.checkpoint(events[0])
                await asyncio.Event().wait()

    setup.publish(5, "0")
    setup.publish(5, "1")
    async with setup.processor(lambda: Stuck(setup), shutdown_timeout=timedelta(seconds=1)):
        await seconds(31)
        values["lag"] = sdk.by_partition("eventproc.lag.events")
        values["lag time"] = sdk.by_partition("eventproc.lag.time")
        for name in ("partitions.owned", "partitions.served", "lease.margin", "balanced"):
            values[name] = sdk.value(f"eventproc.{name}")

    assert values["lag"] == {"0": 0, "1": 4}
    assert values["lag time"] == {"0": 0, "1": 0}
    assert (values["partitions.owned"], values["partitions.served"], values["balanced"]) == (
        2,
        2,
        1,
    )
    assert 30 < values["lease.margin"] < 60
    assert sdk.points("eventproc.lag.events") == []


async def test_a_partition_whose_handler_does_not_start_is_owned_and_not_served(sdk):
    """So the difference of the two shows it."""
    setup = sdk.setup()

    class Failing(Noting):
        async def initialize(self, context):
            raise OSError("no database")

    async with setup.processor(lambda: Failing(setup)):
        await seconds(31)
        names = ("partitions.owned", "partitions.served")
        found = [sdk.value(f"eventproc.{name}") for name in names]

    assert found == [1, 0]


async def test_an_outage_of_the_hub_is_a_time_and_no_lag(sdk):
    """A lag of zero would hide it. The recommended alert is above this many seconds."""
    setup = sdk.setup()
    found = []

    def look():
        found.append(
            (
                sdk.by_partition("eventproc.receiver.failing"),
                sdk.by_partition("eventproc.lag.events"),
                sdk.value("eventproc.partitions.stalled"),
            )
        )

    async with setup.processor(stall_timeout=timedelta(seconds=30)):
        setup.publish(1)
        await seconds(10)
        look()
        setup.hub.begin_outage()
        await seconds(120)
        look()

    assert found == [({"0": 0}, {"0": 0}, 0), ({"0": 120}, {}, 1)]


async def test_ages_grow_until_the_event_or_checkpoint_is_done(sdk):
    """The lag in time while the handler hangs; the checkpoint's age during an outage."""
    setup = sdk.setup()
    release = asyncio.Event()
    ages, lags = [], []

    class Stuck(Noting):
        async def process_events(self, context, events):
            await super().process_events(context, events)
            if len(setup.handled) == 2:
                await release.wait()

    def look():
        ages.append(round(sdk.by_partition("eventproc.checkpoint.age")["0"]))
        lags.append(round(sdk.by_partition("eventproc.lag.time")["0"]))

    async with setup.processor(lambda: Stuck(setup)):
        await seconds(1)
        setup.publish(1)
        await seconds(1)
        with setup.store_by_owner["a"].outage():
            await seconds(19)
            setup.publish(1)
            await seconds(1)
            look()
        await seconds(19)
        look()
        release.set()
        await seconds(10)
        look()

    assert ages == [21, 0, 0]
    assert lags == [20, 20, 0]


async def test_counters_equal_the_statistics_and_never_decrease(sdk):
    """Over a stop and a second start, and over two processors in one process."""
    setup = sdk.setup(partition_count=4)
    seen, true = [], []

    def look(*processors):
        counts = [processor.statistics() for processor in processors]
        true.append((sum(c.claim_count for c in counts), sum(c.hand_over_count for c in counts)))
        seen.append((sdk.value("eventproc.claims"), sdk.value("eventproc.hand_overs")))

    first, second = setup.processor(owner_id="a"), setup.processor(owner_id="b")
    async with first:
        await seconds(10)
        async with second:
            await seconds(30)
            look(first, second)
        await seconds(10)
    seen.append((sdk.value("eventproc.claims"), sdk.value("eventproc.hand_overs")))
    async with first:
        await seconds(10)
        look(first, second)

    assert seen[0] == true[0] == (6, 2)
    assert seen[1] == (8, 2)
    assert seen[2] == (12, 2)
    assert true[1][0] == 6, "the statistics are of the newest start"


async def test_a_counter_stays_while_a_reading_has_less(sdk):
    """A reading in another thread may leave out a pump that is being replaced."""
    setup = sdk.setup()
    newest = replace(setup.processor().statistics(), claim_count=5)
    reported = Instrumentation(sdk.telemetry, setup.group, lambda: newest)
    reported.begin()
    seen = [sdk.value("eventproc.claims")]
    for count in (4, 6):
        newest = replace(newest, claim_count=count)
        seen.append(sdk.value("eventproc.claims"))

    assert seen == [5, 5, 6]


@pytest.mark.parametrize("outcome", [WriteOutcome.LOST, WriteOutcome.UNKNOWN])
async def test_a_checkpoint_that_was_not_written_has_its_outcome_as_error_type(sdk, outcome):
    async def write(_):
        return CheckpointResult(outcome=outcome)

    setup = sdk.setup()
    reported = Instrumentation(sdk.telemetry, setup.group, setup.processor().statistics)
    update: Any = None
    await reported.write(write, "0")(update)

    name = "messaging.client.operation.duration"
    assert sdk.count(name, error_type=outcome.value) == 1


async def test_the_duration_of_cycles_is_measured_even_if_they_fail(sdk):
    """An outage of the store is an error type."""
    setup = sdk.setup()
    async with setup.processor():
        await seconds(25)
        with setup.store_by_owner["a"].outage():
            await seconds(15)
        await seconds(15)

    assert sdk.count("eventproc.cycle.duration") > 5
    assert sdk.count("eventproc.cycle.duration", error_type="StoreUnavailableError") > 1


def test_metrics_may_be_read_in_another_thread(sdk, caplog):
    """Again and again, while partitions come and go."""
    setup = sdk.setup(partition_count=16)
    is_over = threading.Event()

    def read():
        while not is_over.is_set():
            sdk.reader.get_metrics_data()

    async def scenario():
        async with setup.processor(owner_id="a"):
            for number in range(10):
                async with setup.processor(owner_id=f"b{number}"):
                    await seconds(20)

    reading = threading.Thread(target=read)
    reading.start()
    run_virtual(scenario())
    is_over.set()
    reading.join()

    assert [r for r in caplog.records if r.name.startswith("opentelemetry")] == []


@pytest.fixture(name="busy_threads")
def _busy_threads():
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval_s)


@pytest.mark.usefixtures("busy_threads")
def test_processors_may_start_and_stop_while_another_thread_reads(sdk, caplog):
    """A hundred at a time, with as many thread switches as possible."""
    setup = sdk.setup()
    still = setup.processor().statistics()
    is_over = threading.Event()

    def come_and_go():
        while not is_over.is_set():
            started = [
                Instrumentation(sdk.telemetry, setup.group, lambda: still) for _ in range(100)
            ]
            for each in started:
                each.begin()
            for each in started:
                each.end()

    coming = threading.Thread(target=come_and_go)
    coming.start()
    for _ in range(400):
        sdk.reader.get_metrics_data()
    is_over.set()
    coming.join()

    assert [r for r in caplog.records if r.name.startswith("opentelemetry")] == []


async def test_several_processors_of_a_process_report_the_worst_of_them(sdk):
    """A sum of lease margins, or of flags, would hide the one that is about to lose its leases."""
    setup = sdk.setup(partition_count=2)
    found: dict[str, Any] = {}
    async with setup.processor(owner_id="a") as a, setup.processor(owner_id="b") as b:
        await seconds(60)
        setup.store_by_owner["a"].is_out = True
        await seconds(20)
        margins = [p.statistics().lease_margin_seconds for p in (a, b)]
        found["margins"] = margins
        found["margin"] = sdk.value("eventproc.lease.margin")
        found["balanced"] = sdk.value("eventproc.balanced")
        setup.store_by_owner["a"].is_out = False
        await seconds(60)

    mine, others = found["margins"]

    assert 0 < mine < others
    assert found["margin"] == mine
    assert found["balanced"] == 1


async def test_the_lease_margin_is_that_of_the_lease_that_is_trusted_for_the_shortest(sdk):
    """Only one of two leases is not renewed."""
    setup = sdk.setup(partition_count=2)
    async with setup.processor() as processor:
        await seconds(60)
        store: Any = setup.store_by_owner["a"]
        original = store.claim_ownership

        async def claim(group, claims):
            won = await original(group, [c for c in claims if c.partition_id == "0"])
            others = [c for c in claims if c.partition_id != "0"]
            unknown = [ClaimResult(claim=c, outcome=WriteOutcome.UNKNOWN) for c in others]
            return [*won, *unknown]

        store.claim_ownership = claim
        await seconds(25)
        run = processor._run
        assert run is not None
        left_s = [run.leases.remaining_s(partition_id) for partition_id in ("0", "1")]
        (renewed_s, old_s), margin_s = left_s, sdk.value("eventproc.lease.margin")

    assert 0 < old_s < renewed_s
    assert margin_s == old_s
