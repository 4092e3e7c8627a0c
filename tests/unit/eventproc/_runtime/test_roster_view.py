"""What a processor knows from its roster: when it reads it, and what it logs."""

import asyncio

import pytest

from eventproc import ConfigurationError
from eventproc._base.logs import get_logger
from eventproc._runtime.roster_view import RosterView
from eventproc._runtime.run import CloseStack
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.fake_roster import FakeCluster, FakeRoster

INTERVAL_S = FakeRoster.interval.total_seconds()


class Watched:
    """A view, and what it caused."""

    def __init__(self, *names, own="a") -> None:
        self.cluster = FakeCluster(names)
        self.changes = 0
        self.roster = self.cluster.roster(own)
        log = get_logger("eventproc.processor")
        self.opened = CloseStack(log)
        self.view = RosterView(self.roster, own, changed=self._change, log=log)

    def _change(self) -> None:
        self.changes += 1

    @property
    def request_count(self):
        """How often the roster was read."""
        return len(self.cluster.requests)

    async def __aenter__(self):
        await self.view.open(self.opened)
        return self

    async def __aexit__(self, *exc):
        await self.opened.close(0.0)


@pytest.fixture(name="events")
def _events(caplog):
    """Return a function that returns each event that was logged, with its level."""
    caplog.set_level("DEBUG")
    return lambda: [(r.levelname, r.getMessage().split()[0]) for r in caplog.records]


def test_it_is_read_at_the_start_and_then_while_the_processor_leads():
    """Once in an interval; not at all while another one leads."""

    async def scenario():
        async with Watched("a", "b") as seen:
            await asyncio.sleep(3.5 * INTERVAL_S)
            start = seen.request_count
            seen.view.note_leader(leads=True)
            await asyncio.sleep(0.1)
            at_once = seen.request_count
            await asyncio.sleep(3 * INTERVAL_S)
            leading = seen.request_count
            seen.view.note_leader(leads=False)
            await asyncio.sleep(5 * INTERVAL_S)
            return start, at_once, leading, seen.request_count

    assert run_virtual(scenario()) == (1, 2, 5, 5)


def test_two_reads_are_an_interval_apart_however_often_the_leader_changes():
    """The API is asked no more often than that."""

    async def scenario():
        async with Watched("a") as seen:
            for _ in range(100):
                seen.view.note_leader(leads=True)
                await asyncio.sleep(INTERVAL_S / 20)
                seen.view.note_leader(leads=False)
            return seen.request_count

    assert run_virtual(scenario()) <= 6


def test_what_a_former_leader_read_is_forgotten():
    """Another processor may know better by now."""

    async def scenario():
        async with Watched("a", "b") as seen:
            before = seen.view.owner_ids
            seen.view.note_leader(leads=True)
            leading = seen.view.owner_ids
            seen.view.note_leader(leads=False)
            return before, leading, seen.view.owner_ids

    assert run_virtual(scenario()) == (frozenset("ab"), frozenset("ab"), None)


def test_a_change_asks_for_a_cycle_and_is_logged(events):
    """The same answer again is neither."""

    async def scenario():
        async with Watched("a", "b") as seen:
            seen.view.note_leader(leads=True)
            await asyncio.sleep(2.5 * INTERVAL_S)
            same = seen.changes
            seen.cluster.names = ["a"]
            await asyncio.sleep(INTERVAL_S)
            return same, seen.changes, seen.view.owner_ids

    assert run_virtual(scenario()) == (1, 2, frozenset("a"))
    assert events() == [("INFO", "roster_changed")] * 2


async def test_a_roster_without_the_own_name_is_logged(events):
    """After each answer that is new."""
    async with Watched("b", own="a"):
        pass

    assert events() == [("INFO", "roster_changed"), ("WARNING", "roster_omits_own")]


def test_without_an_answer_the_last_one_stays(events):
    """The failure is logged when it begins and when it ends, at debug level meanwhile."""

    async def scenario():
        async with Watched("a") as seen:
            seen.view.note_leader(leads=True)
            seen.cluster.goes_away()
            await asyncio.sleep(2.5 * INTERVAL_S)
            during = seen.view.owner_ids
            seen.cluster.comes_back()
            await asyncio.sleep(INTERVAL_S)
            return during

    assert run_virtual(scenario()) == frozenset("a")
    assert events()[1:] == [
        ("WARNING", "roster_unavailable"),
        ("DEBUG", "roster_unavailable"),
        ("INFO", "roster_available"),
    ]


@pytest.mark.parametrize(
    ("error", "has_traceback"), [(ConfigurationError("no right"), False), (KeyError("x"), True)]
)
async def test_an_error_while_running_is_logged_and_tried_again(
    events, caplog, error, has_traceback
):
    """At error level, with what it says; one that is not expected, with its traceback."""
    async with Watched("a") as seen:
        seen.view.note_leader(leads=True)
        seen.cluster.error = error
        await asyncio.sleep(1.5 * INTERVAL_S)
        seen.cluster.comes_back()
        await asyncio.sleep(INTERVAL_S)

    (failure,) = [r for r in caplog.records if r.levelname == "ERROR"]

    assert events()[1:] == [("ERROR", "roster_unavailable"), ("INFO", "roster_available")]
    assert str(error.args[0]) in failure.error
    assert bool(failure.exc_info) is has_traceback


@pytest.mark.parametrize("error", [ConfigurationError("no right"), KeyError("no right")])
async def test_a_start_that_fails_closes_the_roster(error):
    """The error says what the roster raised."""
    seen = Watched("a")
    seen.cluster.error = error
    with pytest.raises(ConfigurationError, match="no right"):
        await seen.view.open(seen.opened)
    await seen.opened.close(0.0)

    assert seen.roster.is_open is False


async def test_closing_ends_the_reads():
    """Also one that is under way."""
    seen = Watched("a")
    async with seen:
        seen.view.note_leader(leads=True)
    open_after = seen.roster.is_open
    await asyncio.sleep(5 * INTERVAL_S)

    assert (open_after, seen.request_count) == (False, 1)


async def test_a_cancellation_that_a_roster_swallows_ends_the_reads_all_the_same(monkeypatch):
    """Some clients do so."""
    seen = Watched("a")

    async def swallowing():
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            return frozenset("a")

    async with seen:
        seen.view.note_leader(leads=True)
        monkeypatch.setattr(seen.roster, "owner_ids", swallowing)
        await asyncio.sleep(1.5 * INTERVAL_S)

    assert True
