"""What lasts is logged when it begins and when it ends: an hour of it costs no more lines."""

import asyncio
import logging
from contextlib import contextmanager
from datetime import timedelta

import pytest

from eventproc.models import ClaimResult, WriteOutcome
from eventproc.testing import run_virtual
from tests.stories.scene import Noting, Scene, seconds


class Moody(Noting):
    """Fails while it is in trouble, and cannot cope with errors either."""

    is_in_trouble = False

    async def process_events(self, context, events):
        """Fail or note."""
        if self.is_in_trouble:
            raise RuntimeError("in trouble")
        await super().process_events(context, events)

    async def process_error(self, context, error):
        """Fail at that, too."""
        if self.is_in_trouble:
            raise RuntimeError("in trouble as well")


@contextmanager
def no_store(scene):
    """Nothing of the store answers."""
    with scene.store_by_owner["a"].outage():
        yield


@contextmanager
def no_claims(scene):
    """The store can be read, but every claim remains without an answer."""
    store = scene.store_by_owner["a"]

    async def unanswered(_group, claims):
        await asyncio.sleep(0)
        return [ClaimResult(claim=claim, outcome=WriteOutcome.UNKNOWN) for claim in claims]

    store.claim_ownership, answered = unanswered, store.claim_ownership
    scene.hub.grow(2)
    yield
    store.claim_ownership = answered


@contextmanager
def no_hub(scene):
    """The hub does not answer, and open receivers break."""
    scene.hub.begin_outage()
    yield
    scene.hub.end_outage()


@contextmanager
def no_luck(_scene):
    """The handler fails, and its handling of errors, too."""
    Moody.is_in_trouble = True
    yield
    Moody.is_in_trouble = False


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
    no_luck: {"handler_failed": "handler_recovered"},
}
"""Each trouble, and which event of its begin has which event of its end."""


def lines_of(trouble, minutes, caplog):
    """Return the events that are logged during so many minutes of trouble and at its end."""

    async def story():
        scene = Scene()
        async with scene.processor(lambda: Moody(scene), load_balancing_interval=INTERVAL):
            await seconds(10)
            caplog.clear()
            with trouble(scene):
                scene.publish(1)
                await seconds(60 * minutes)
            scene.publish(1)
            await seconds(120)
            return [vars(r).get("event") for r in caplog.records if r.levelno >= logging.INFO]

    caplog.set_level(logging.DEBUG, "eventproc")
    return run_virtual(story())


INTERVAL = timedelta(seconds=10)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_lasts_longer_is_not_said_more_often(trouble, caplog):
    """Ten times as long, and the same lines."""
    short, long = lines_of(trouble, 6, caplog), lines_of(trouble, 60, caplog)

    assert sorted(long) == sorted(short)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_begins_has_an_end(trouble, caplog):
    """Whoever was alarmed is told when it is over, once for each."""
    lines = lines_of(trouble, 6, caplog)

    for begin, end in TROUBLES[trouble].items():
        assert lines.count(begin) == lines.count(end) == 1, (begin, end, lines)


def test_gaps_are_said_once(caplog):
    """A compacted hub has one in every batch."""

    async def story():
        scene = Scene()
        async with scene.processor(lambda: Moody(scene)):
            for number in range(10):
                scene.hub.stall("0")
                scene.publish(3)
                scene.hub.trim("0", before=3 * number + 2)
                scene.hub.resume("0")
                await seconds(1)
            return scene.numbers()

    caplog.set_level(logging.DEBUG, "eventproc")
    numbers = run_virtual(story())
    levels = [r.levelname for r in caplog.records if vars(r).get("event") == "events_missing"]

    assert numbers == [3 * n + 2 for n in range(10)]
    assert levels == ["WARNING"] + ["DEBUG"] * 8
