"""What a call of ``receive`` tells the program of outages."""

import asyncio
from typing import Any

from azure.core.credentials import AzureNamedKeyCredential

from eventproc.compat._caller import LoopCaller
from eventproc.compat._partition import AioContext
from eventproc.compat._receive import Receive, callbacks_of
from eventproc.compat._receiving import LINK_FAILING_S, Receiving
from eventproc.compat._settings import ClientSettings
from eventproc.models._statistics import DeliveryCounters, ProcessorStatistics, PumpStatistics


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


async def test_an_outage_is_told_once_and_the_next_one_again():
    told: list[tuple[str | None, str]] = []

    async def on_error(context: Any, error: Exception) -> None:
        told.append((context and context.partition_id, type(error).__name__))

    key = AzureNamedKeyCredential("name", "key")
    callbacks = callbacks_of(on_error, {"on_error": on_error}, LoopCaller(), takes_batches=False)
    settings = ClientSettings("namespace", "hub", "$Default", key, {})
    home = asyncio.get_running_loop()
    receiving = Receiving(settings, Receive.of({}), callbacks, AioContext, home=home)
    for now in (
        statistics("1"),
        statistics("1", store_error="no answer"),
        statistics(),
        statistics("1"),
    ):
        await receiving._tell_outages(now)

    lost = ("1", "ConnectionLostError")
    assert told == [lost, (None, "StoreUnavailableError"), lost]
