"""What a call of ``receive`` tells of outages, and when it serves a failed partition again."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from azure.core.credentials import AzureNamedKeyCredential

from eventproc._base.tasks import end
from eventproc.compat._caller import LoopCaller
from eventproc.compat._partition import AioContext
from eventproc.compat._receive import Receive, callbacks_of
from eventproc.compat._receiving import LINK_FAILING_S, WATCH_INTERVAL_S, Receiving
from eventproc.compat._settings import ClientSettings
from eventproc.models._statistics import DeliveryCounters, ProcessorStatistics, PumpStatistics
from eventproc.testing._virtual_time import run_virtual


def statistics(*failing: str, store_error: str | None = None) -> ProcessorStatistics:
    """A snapshot in which the links of these partitions fail, for long enough to be told."""
    pumps = [
        PumpStatistics(
            partition_id=partition_id,
            sequence_number=None,
            checkpointed_sequence_number=None,
            lag=None,
            lag_seconds=None,
            checkpoint_age_seconds=0.0,
            receiver_failing_seconds=LINK_FAILING_S,
            receiver_error="no answer",
            is_paused=False,
            is_stalled=False,
            counters=DeliveryCounters(),
        )
        for partition_id in failing
    ]
    counts = ("unplaced", "cycle", "claim", "steal", "hand_over", "lost", "conflict")
    zeros: dict[str, Any] = dict.fromkeys((f"{name}_count" for name in counts), 0)
    return ProcessorStatistics(
        **zeros,
        owner_id="a",
        owned=(),
        is_balanced=True,
        cycle_seconds=0.0,
        ownership_write_count=0,
        lease_margin_seconds=None,
        store_error=store_error,
        pumps=tuple(pumps),
        stopped=(),
        counters=DeliveryCounters(),
    )


def receiving_with(on_error: Any) -> Receiving:
    """A call of ``receive`` that was not begun."""
    key = AzureNamedKeyCredential("name", "key")
    callbacks = callbacks_of(on_error, {"on_error": on_error}, LoopCaller(), takes_batches=False)
    settings = ClientSettings("namespace", "hub", "$Default", key, {})
    home = asyncio.get_running_loop()
    return Receiving(settings, Receive.of({}), callbacks, AioContext, home=home)


async def test_an_outage_is_told_once_and_the_next_one_again():
    told: list[tuple[str | None, str]] = []

    async def on_error(context: Any, error: Exception) -> None:
        told.append((context and context.partition_id, type(error).__name__))

    receiving = receiving_with(on_error)
    for now in (
        statistics("1"),
        statistics("1", store_error="no answer"),
        statistics(),
        statistics("1"),
    ):
        await receiving._tell_outages(now)

    lost = ("1", "ConnectionLostError")
    assert told == [lost, (None, "StoreUnavailableError"), lost]


def test_a_partition_whose_callback_failed_is_served_again_after_its_pause():
    """The others are not touched."""

    async def scenario() -> dict[str, float]:
        clock, resumed = asyncio.get_running_loop().time, dict[str, float]()
        receiving: Any = receiving_with(None)
        receiving._processor = SimpleNamespace(
            statistics=lambda: replace(statistics(), stopped=("0", "1")),
            resume=lambda partition_id: resumed.setdefault(partition_id, clock()),
        )
        began_s = clock()
        receiving._context("0")[0].resume_at_s = began_s + 3 * WATCH_INTERVAL_S
        receiving._context("1")[0].resume_at_s = began_s + 60
        watching = asyncio.ensure_future(receiving._watch())
        await asyncio.sleep(30)
        await end([watching])
        return {partition_id: at_s - began_s for partition_id, at_s in resumed.items()}

    assert run_virtual(scenario()) == {"0": 3 * WATCH_INTERVAL_S}


async def test_a_cancelled_call_hands_out_no_more_events():
    """What waits in the partitions is for whoever owns them next."""

    async def wait() -> None:
        await asyncio.Event().wait()

    async def stop() -> None:
        """Has nothing to stop."""

    receiving: Any = receiving_with(None)
    receiving._processor = SimpleNamespace(start=wait, stop=stop)
    running = asyncio.create_task(receiving.run())
    await asyncio.sleep(0)
    was_over = receiving._callbacks.caller.is_over
    await end([running])

    assert (was_over, receiving._callbacks.caller.is_over) == (False, True)
