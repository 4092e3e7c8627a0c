"""Conditions are logged when they begin and end: one that lasts an hour takes no more lines."""

import asyncio
import logging
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise

import pytest

from eventproc.models import ClaimResult, WriteOutcome
from eventproc.testing import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds


class FailingInTrouble(Noting):
    """Raises while it is in trouble, also in ``process_error``."""

    is_in_trouble = False

    async def process_events(self, context, events):
        """Raise or record."""
        if self.is_in_trouble:
            raise RuntimeError("in trouble")
        await super().process_events(context, events)

    async def process_error(self, context, error):
        """Raise, too."""
        if self.is_in_trouble:
            raise RuntimeError("in trouble as well")


@contextmanager
def no_store(setup):
    """The store does not answer."""
    with setup.store_by_owner["a"].outage():
        yield


@contextmanager
def no_claims(setup):
    """The store can be read, but every claim has an unknown outcome."""
    store = setup.store_by_owner["a"]

    async def unanswered(_group, claims):
        await asyncio.sleep(0)
        return [ClaimResult(claim=claim, outcome=WriteOutcome.UNKNOWN) for claim in claims]

    store.claim_ownership, answered = unanswered, store.claim_ownership
    setup.hub.grow(2)
    yield
    store.claim_ownership = answered


@contextmanager
def no_hub(setup):
    """The hub does not answer, and open receivers break."""
    setup.hub.begin_outage()
    yield
    setup.hub.end_outage()


@contextmanager
def failing_handler(_setup):
    """The handler raises, and its ``process_error``, too."""
    FailingInTrouble.is_in_trouble = True
    yield
    FailingInTrouble.is_in_trouble = False


TROUBLES = {
    no_store: {
        "store_failed": "store_recovered",
        "checkpoint_failed": "checkpoint_recovered",
    },
    no_claims: {"claim_outcome_unknown": "claim_recovered"},
    no_hub: {
        "receiver_failed": "receiver_recovered",
        "partition_ids_failed": "partition_ids_recovered",
    },
}
"""Each trouble, and which event of its begin has which event of its end."""


def lines_of(trouble, minutes, caplog):
    """Return the events logged during so many minutes of trouble, and at its end."""

    async def scenario():
        setup = Setup()
        async with setup.processor(
            lambda: FailingInTrouble(setup), load_balancing_interval=INTERVAL
        ):
            await seconds(10)
            caplog.clear()
            with trouble(setup):
                setup.publish(1)
                await seconds(60 * minutes)
            setup.publish(1)
            await seconds(120)
            return [vars(r).get("event") for r in caplog.records if r.levelno >= logging.INFO]

    caplog.set_level(logging.DEBUG, "eventproc")
    return run_virtual(scenario())


INTERVAL = timedelta(seconds=10)


@pytest.mark.parametrize(
    ("trouble", "minutes"),
    [
        (no_store, 60),
        (no_hub, 60),
        pytest.param(no_claims, 24, marks=pytest.mark.long),
        pytest.param(no_claims, 60, marks=pytest.mark.night),
    ],
)
def test_trouble_that_lasts_longer_is_not_logged_more_often(trouble, minutes, caplog):
    """Ten times as long gives the same lines; claims that are lost take long to play."""
    short, long = lines_of(trouble, 6, caplog), lines_of(trouble, minutes, caplog)

    assert sorted(long) == sorted(short)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_each_condition_that_is_logged_is_logged_when_it_ends(trouble, caplog):
    """Once for each beginning."""
    lines = lines_of(trouble, 6, caplog)

    for begin, end in TROUBLES[trouble].items():
        assert lines.count(begin) == lines.count(end) == 1, (begin, end, lines)


def test_a_handler_that_goes_on_failing_is_logged_again_each_minute(caplog):
    """With the number of the attempt, and for how long it has failed."""
    lines = lines_of(failing_handler, 6, caplog)
    told = [
        record
        for record in caplog.records
        if vars(record).get("event") == "handler_failed" and record.levelno == logging.WARNING
    ]
    since_s = [record.failing_s for record in told]

    assert since_s[0] is None
    assert all(60 <= b - a <= 90 for a, b in pairwise([0, *since_s[1:]]))
    assert len(told) == lines.count("handler_failed") in {5, 6, 7}
    assert lines.count("handler_recovered") == 1
    assert [record.attempt for record in told] == sorted({record.attempt for record in told})


async def test_gaps_are_logged_once(caplog):
    """A compacted hub has one in every batch."""
    caplog.set_level(logging.DEBUG, "eventproc")
    setup = Setup()
    async with setup.processor(lambda: FailingInTrouble(setup)):
        for number in range(10):
            setup.hub.stall("0")
            setup.publish(3)
            setup.hub.trim("0", before=3 * number + 2)
            setup.hub.resume("0")
            await seconds(1)
        numbers = setup.numbers()

    levels = [r.levelname for r in caplog.records if vars(r).get("event") == "events_missing"]

    assert numbers == [3 * n + 2 for n in range(10)]
    assert levels == ["WARNING"] + ["DEBUG"] * 8
