"""Which pumps are started and ended when the owned partitions change, and after a failure."""

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.models import CloseReason, WriteOutcome
from eventproc.models._statistics import DeliveryCounters
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import seconds
from tests.unit.eventproc._group.pumps.stub_pumps import PumpsFixture

some = st.frozensets(st.sampled_from("abcdef"))


@given(some, some, some)
def test_pumps_are_started_and_ended_until_they_match_the_owned_partitions(before, owned, surplus):
    """A partition that is being handed over gets neither a second pump nor a second end."""

    async def scenario():
        fixture = PumpsFixture()
        pumps = fixture.pumps
        await fixture.adjust(before)
        started = fixture.served()
        handed_over = dict.fromkeys(sorted(surplus & before))
        await fixture.adjust(before, handed_over)
        await fixture.adjust(owned, handed_over)
        ended = [p for p, pump in fixture.made if pump.is_lost]
        running = pumps.running
        for _, pump in fixture.made:
            pump.end(CloseReason.SHUTDOWN)
        await seconds(2)
        all_made = fixture.served()
        assert len(set(all_made)) == len(all_made), "a second pump"
        return started, all_made[len(started) :], ended, running

    started, later, ended, running = run_virtual(scenario())

    assert started == sorted(before)
    assert later == sorted(owned - before)
    assert ended == sorted(before - owned - surplus)
    assert running == before | owned


async def test_a_lost_partition_is_neither_paused_nor_stopped_when_it_comes_back():
    """The former ownership says nothing about the next one."""
    fixture = PumpsFixture()
    await fixture.adjust("01")
    fixture.pumps.pause("0")
    fixture.newest("1").end(CloseReason.HANDLER_FAILED)
    await seconds(2)
    stopped = fixture.pumps.restarts.stopped
    fixture.newest("0").end(CloseReason.OWNERSHIP_LOST)
    await seconds(2)
    await fixture.adjust([])
    await fixture.adjust("01")

    assert (
        stopped,
        fixture.pumps.restarts.stopped,
        fixture.served(),
        fixture.newest().is_paused,
    ) == (("1",), (), ["0", "1", "0", "1"], False)


async def test_a_stopped_partition_is_served_again_after_resume_and_forced_once():
    """A resume asks for the next cycle at once, and the next pump tries the first event again."""
    fixture = PumpsFixture()
    await fixture.adjust("0")
    fixture.pumps.resume("0")  # Without effect: it is not stopped.
    was_changed = bool(fixture.changed_at_s)
    fixture.newest().end(CloseReason.HANDLER_FAILED)
    await seconds(2)
    await fixture.adjust("0")
    while_stopped = fixture.served()
    fixture.changed_at_s.clear()
    fixture.pumps.resume("0")
    resumed = fixture.pumps.restarts.stopped, len(fixture.changed_at_s)
    forced = []
    for _ in range(2):
        await fixture.replace_pump()
        forced.append(fixture.newest().is_forced)
    fixture.pumps.resume("0")
    await fixture.replace_pump()
    forced.append(fixture.newest().is_forced)

    assert (was_changed, while_stopped, resumed, forced) == (
        False,
        ["0"],
        ((), 1),
        [True, False, False],
    )


async def test_a_forced_start_is_forgotten_if_the_partition_is_lost_before_it():
    """The next ownership begins by the rules."""
    fixture = PumpsFixture()
    await fixture.adjust("0")
    fixture.newest().end(CloseReason.HANDLER_FAILED)
    await seconds(2)
    fixture.pumps.resume("0")
    await fixture.adjust([])
    await fixture.adjust("0")

    assert (len(fixture.made), fixture.newest().is_forced) == (2, False)


async def test_a_partition_is_counted_as_lost_once():
    """However often it is noticed: by a renewal, by a poll, by a checkpoint."""
    fixture = PumpsFixture()
    await fixture.adjust("01")
    fixture.pumps.lose("0")
    fixture.pumps.lose("0")
    fixture.pumps.lose("7")
    one = fixture.pumps.lost_count
    await fixture.adjust([])
    fixture.pumps.lose_all()

    assert (one, fixture.pumps.lost_count, [pump.is_lost for _, pump in fixture.made]) == (
        1,
        2,
        [True, True],
    )


async def test_a_pump_that_failed_rests_and_then_asks_for_a_cycle():
    """Longer after each failure in a row. A refusal of the source counts as a failure."""
    fixture, rests_s = PumpsFixture(), []
    now_s = asyncio.get_running_loop().time
    await fixture.adjust("0", others=("b",))
    for failure in (RuntimeError(), None, RuntimeError()):
        if failure is None:
            fixture.newest().end(CloseReason.SOURCE_FAILED)
        else:
            fixture.newest().fail(failure)
        await seconds(1.5)
        made_count, failed_at_s = len(fixture.made), now_s()
        await fixture.adjust("0", others=("b",))
        assert len(fixture.made) == made_count, "it rests"
        fixture.changed_at_s.clear()
        await seconds(60)
        (asked_at_s,) = fixture.changed_at_s
        rests_s.append(asked_at_s - failed_at_s)
        await fixture.adjust("0", others=("b",))
        assert len(fixture.made) == made_count + 1, "it rested"

    transfers = fixture.transfers

    for rest_s, whole_s in zip(rests_s, [8, 16, 32], strict=True):
        assert whole_s / 2 - 1.5 <= rest_s <= whole_s
    assert not transfers


async def rest_after_failure(fixture):
    """Have the newest pump fail; return after how many seconds it asks for a cycle."""
    now_s = asyncio.get_running_loop().time
    fixture.newest().fail(RuntimeError())
    failed_at_s = now_s()
    await seconds(1.5)
    fixture.changed_at_s.clear()
    await seconds(60)
    (asked_at_s,) = fixture.changed_at_s
    return asked_at_s - failed_at_s


async def test_a_failure_after_a_long_time_without_one_is_the_first_of_a_new_row():
    """Else rare failures would add up, and each would cost the longest rest at last."""
    fixture, rests_s = PumpsFixture(), []
    await fixture.adjust("0")
    for _ in range(8):
        await seconds(600)
        rests_s.append(await rest_after_failure(fixture))
        await fixture.adjust("0")

    assert max(rests_s) <= 8


async def test_a_partition_that_is_lost_before_its_pump_was_made_gets_none():
    """It would wait for a lease that is another one by then."""
    fixture = PumpsFixture()
    for lose in (lambda: fixture.pumps.lose("0"), fixture.pumps.lose_all):
        fixture.pumps.adjust("0", {})
        lose()
        await seconds(0)
    before = fixture.served()
    await fixture.adjust("0")

    assert (before, fixture.served()) == ([], ["0"])


async def test_a_failure_is_forgotten_when_the_partition_is_handed_over():
    """It is not shown as failed any more, and its next failure is the first one again."""
    fixture = PumpsFixture()
    await fixture.adjust("0")
    for _ in range(3):
        fixture.newest().fail(RuntimeError())
        await seconds(60)
        await fixture.adjust("0")
    before = fixture.pumps.restarts.failed
    await fixture.adjust("0", {"0": "b"})
    await seconds(2)
    after = fixture.pumps.restarts.failed
    await fixture.adjust("0")
    rest_s = await rest_after_failure(fixture)

    assert (before, after) == (frozenset("0"), frozenset())
    assert rest_s <= 1 + 8


@pytest.mark.parametrize("outcome", [WriteOutcome.WON, WriteOutcome.LOST, RuntimeError("refused")])
async def test_a_partition_that_was_handed_over_may_be_served_again(outcome):
    """Also after a transfer that failed; only one that was won is counted."""
    fixture = PumpsFixture()
    fixture.outcome = outcome
    await fixture.adjust("01")
    await fixture.adjust("0", {"0": "b", "1": "b"})
    fixture.newest("1").end(CloseReason.OWNERSHIP_LOST)
    during = fixture.pumps.hand_overs.under_way
    await seconds(2)
    fixture.changed_at_s.clear()
    after = fixture.pumps.hand_overs.under_way, fixture.newest().ended_by
    await fixture.adjust("0")

    transfers, served, count = fixture.transfers, fixture.served(), fixture.pumps.hand_overs.count

    assert during == {"0"}
    assert after == (frozenset(), CloseReason.HANDED_OVER)
    assert transfers == [("0", "b")]
    assert served == ["0", "1", "0"]
    assert count == (outcome is WriteOutcome.WON)


async def test_a_partition_that_is_drained_goes_to_the_owner_of_the_newest_plan(caplog):
    """And to none, if the plan has come to leave it here."""
    fixture = PumpsFixture()
    await fixture.adjust("01")
    await fixture.adjust("01", {"0": "b", "1": "b"})
    await fixture.adjust("01", {"0": "c"})
    await seconds(2)

    assert fixture.transfers == [("0", "c")]
    assert "hand_over_failed" not in caplog.text


async def test_a_pump_that_stalls_while_it_is_handed_over_is_transferred_once():
    """To the owner that the plan wants, and not to any other member as well."""
    fixture = PumpsFixture()
    await fixture.adjust("0")
    fixture.newest().end(CloseReason.STALLED)
    await fixture.adjust("0", {"0": "b"}, others=("c",))
    await seconds(2)

    assert fixture.transfers == [("0", "b")]
    assert not fixture.pumps.hand_overs.under_way


async def test_a_drain_ends_every_pump_and_transfers_each_lease_after_its_pump():
    """To the planned owner or to none; a tenth of the time is left for the transfers."""
    fixture = PumpsFixture()
    await fixture.adjust("012")
    fixture.newest("1").has_unstored_progress = True
    fixture.newest("2").has_unstored_progress = True
    fixture.newest("2").is_lost = True
    await fixture.pumps.drain("01", {"0": "b"}, timedelta(seconds=10))
    ends = [(pump.ended_by, pump.budget) for _, pump in fixture.made]

    transfers, pumps = fixture.transfers, fixture.pumps

    assert transfers == [("0", "b"), ("1", None)]
    assert ends[:2] == [(CloseReason.SHUTDOWN, timedelta(seconds=9))] * 2
    assert pumps.abandoned == ("1",)
    assert not pumps.running
    assert pumps.hand_overs.count == 0


@pytest.mark.parametrize("targets", [None, {"0": "b"}])
async def test_a_cancelled_drain_leaves_no_pump_and_no_hand_over_behind(targets):
    """Its tasks are cancelled with it, so no lease is transferred after it."""
    fixture = PumpsFixture()
    await fixture.adjust("0")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await fixture.pumps.drain("0", targets, timedelta(seconds=10))
    await seconds(0.01)  # The pump itself would end only after some seconds.
    left = fixture.pumps.running, fixture.pumps.hand_overs.under_way
    await seconds(5)

    assert (left, fixture.transfers) == ((frozenset(), frozenset()), [])


async def test_a_stopped_partition_is_handed_over_without_a_pump():
    """The failure policy stopped it here; the next owner begins with its own handler."""
    fixture = PumpsFixture()
    await fixture.adjust("0")
    fixture.newest().end(CloseReason.HANDLER_FAILED)
    await seconds(2)
    await fixture.adjust("0", {"0": "b"})
    await seconds(0)

    assert (fixture.transfers, fixture.served()) == ([("0", "b")], ["0"])


async def test_a_pump_and_a_transfer_that_end_ask_for_a_cycle():
    """So a partition that is free again does not wait for the next poll."""
    fixture, seen = PumpsFixture(), []
    await fixture.adjust("01")
    fixture.newest("1").end(CloseReason.OWNERSHIP_LOST)
    await seconds(2)
    seen.append(len(fixture.changed_at_s))
    await fixture.adjust("0", {"0": "b"})
    await seconds(2)
    seen.append(len(fixture.changed_at_s))

    assert seen == [1, 3]


async def test_counters_include_pumps_that_ended():
    """They never go back while a processor runs."""
    fixture = PumpsFixture()
    await fixture.adjust("0")
    fixture.newest().counters.handled_count = 3
    await fixture.replace_pump()
    fixture.newest().counters.handled_count = 4
    total = DeliveryCounters()
    fixture.pumps.add_counts(total)

    assert total.handled_count == 7


@pytest.mark.parametrize("error", [RuntimeError(), asyncio.CancelledError()])
async def test_a_handler_that_cannot_be_made_rests_like_a_pump_that_failed(error):
    """Also if its factory raises what looks like a cancellation; then a cycle is asked for."""
    fixture = PumpsFixture()
    fixture.failures = [error]
    await fixture.adjust("0")
    await fixture.adjust("0")
    at_once = fixture.served(), len(fixture.changed_at_s)
    await seconds(9)
    await fixture.adjust("0")

    assert (at_once, fixture.served(), len(fixture.changed_at_s)) == (([], 1), ["0"], 2)
