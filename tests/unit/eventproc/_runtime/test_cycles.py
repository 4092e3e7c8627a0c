"""When the next cycle begins."""

import asyncio
import logging
from datetime import timedelta
from typing import Any

import pytest

from eventproc._core.ownership.stability import STABLE_AFTER_CYCLES
from eventproc._runtime.cycles import PAUSE_MIN_S
from eventproc.errors import StoreUnavailableError
from eventproc.models import ClaimResult, WriteOutcome
from eventproc.testing import StoreFaults
from tests.scenarios.group_setup import Setup, seconds

CYCLE_S = 2.0


def events_named(caplog, name):
    return [record for record in caplog.records if getattr(record, "event", "") == name]


@pytest.mark.parametrize("at_s", [CYCLE_S / 2, CYCLE_S + 1], ids=["during a cycle", "at rest"])
async def test_a_change_is_followed_by_a_cycle_at_once(at_s):
    """A cycle under way has read before the change, so it does not count."""
    setup, begun_at_s = Setup(), []
    loop = asyncio.get_running_loop()
    async with setup.processor() as processor:
        await seconds(60)
        run: Any = processor._run
        store: Any = setup.store_by_owner["a"]
        original, begun = store.list_ownership, asyncio.Event()

        async def list_slowly(group):
            begun_at_s.append(loop.time())
            begun.set()
            await seconds(CYCLE_S)
            return await original(group)

        store.list_ownership = list_slowly
        await begun.wait()
        await seconds(at_s)
        begun.clear()
        run.cycles.wake()
        changed_s = loop.time()
        await begun.wait()

    assert (begun_at_s[1] - changed_s) <= max(CYCLE_S - at_s, 0) + 2 * PAUSE_MIN_S


async def test_the_error_of_the_store_is_shown_for_as_long_as_it_lasts():
    """The statistics and `/status` have it, and not when the store has answered again."""
    setup, shown = Setup(), []
    async with setup.processor() as processor:
        await seconds(30)
        shown.append(processor.statistics().store_error)
        with setup.store_by_owner["a"].outage():
            await seconds(30)
            shown.append(processor.statistics().store_error)
        await seconds(30)
        shown.append(processor.statistics().store_error)

    before, during, after = shown
    assert during
    assert (before, after) == (None, None)


async def test_a_store_that_only_refuses_renewals_is_an_error_too(caplog):
    """As a file that another program has locked, or a credential that may only read."""
    setup, shown = Setup(), []
    async with setup.processor() as processor:
        await seconds(30)
        store: Any = setup.store_by_owner["a"]
        answer = store.claim_ownership

        async def unknown(group, claims):
            error = StoreUnavailableError("the database is locked")
            return [
                ClaimResult(claim=claim, outcome=WriteOutcome.UNKNOWN, error=error)
                for claim in claims
            ]

        store.claim_ownership = unknown
        await seconds(30)
        shown.append(processor.statistics().store_error)
        store.claim_ownership = answer
        await seconds(30)
        shown.append(processor.statistics().store_error)

    (failed,) = events_named(caplog, "renewal_failed")
    assert shown == [failed.error, None] == ["the database is locked", None]


async def test_polls_that_are_late_again_and_again_are_logged_once(caplog):
    """And once more when they come in time again."""
    caplog.set_level(logging.INFO)
    setup = Setup()
    async with setup.processor():
        await seconds(30)
        store: Any = setup.store_by_owner["a"]
        late = timedelta(seconds=35)
        store.faults = StoreFaults(delay_min=late, delay_max=late)
        await seconds(200)
        begun, ended = (
            len(events_named(caplog, name)) for name in ("group_read_again", "group_read_in_time")
        )
        store.faults = StoreFaults()
        await seconds(120)

    assert (begun, ended) == (1, 0)
    assert len(events_named(caplog, "group_read_again")) == 1
    assert len(events_named(caplog, "group_read_in_time")) == 1


async def test_a_processor_that_is_alone_claims_as_soon_as_it_may():
    """No other has to poll before, so a new group does not wait for a whole interval."""
    interval = timedelta(seconds=2)
    setup, loop = Setup(), asyncio.get_running_loop()
    async with setup.processor(
        rebalance_interval=interval, load_balancing_interval=interval
    ) as processor:
        begun_s = loop.time()
        while not processor.statistics().owned:
            await seconds(PAUSE_MIN_S)
        took_s = loop.time() - begun_s

    least_s = STABLE_AFTER_CYCLES * interval.total_seconds()
    assert least_s <= took_s < least_s + 4 * PAUSE_MIN_S
