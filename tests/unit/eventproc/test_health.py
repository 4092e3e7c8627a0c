"""What is said of one processor, from what it and its threads say."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from eventproc._base.logs import get_logger
from eventproc.health import _UNREAD, HealthServer, _Watch, _WatchedThread
from eventproc.models import ConsumerGroup
from eventproc.models._statistics import GroupStatistics, Phase
from eventproc.ports import WatchedMember
from eventproc.testing._virtual_time import run_virtual
from tests.unit.eventproc._core.watching.test_health import PUMP, of_partitions

BEATS = 3


class Member:
    """A processor whose threads answer, and whose statistics can be read, as it is told."""

    def __init__(self) -> None:
        self.newest: GroupStatistics | None = None
        self.runs = True
        self.failure = ""

    def watch(self) -> _Watch:
        """Return what watches it."""

        def ping(answer):
            if self.runs:
                answer()

        member = WatchedMember(
            owner_id="a",
            group=ConsumerGroup(
                fully_qualified_namespace="contoso", eventhub_name="orders", name="billing"
            ),
            phase=lambda: Phase.SERVING,
            awaited=lambda: "",
            failure=lambda: self.failure,
            statistics=lambda: self.newest,
            display_name=str,
            ping_loop=ping,
            ping_store=lambda answer: answer(),
            meter_provider=None,
        )
        return _Watch(member, get_logger("eventproc.health"))


def test_statistics_that_change_while_they_are_read_are_those_of_before():
    """A busy processor is no reason for a red answer; only one that was never read is."""
    member = Member()
    watch = member.watch()
    unread = [watch.ready(BEATS)["reasons"], watch.partitions()["reasons"]]
    stalled = replace(PUMP, is_stalled=True, progress_age_seconds=400.0)
    member.newest = of_partitions(stalled)
    read = watch.partitions()
    member.newest = None

    assert unread == [[_UNREAD], [_UNREAD]]
    assert read["reasons"] == ["3: there are events, and none was completed for 400 s"]
    assert watch.partitions() == read
    assert watch.ready(BEATS)["ok"]


@pytest.mark.parametrize(("count", "is_live"), [(BEATS - 1, True), (BEATS, False)])
def test_a_thread_is_blocked_after_so_many_beats_without_an_answer(count, is_live):
    """It is not ready then either, and is both as soon as it runs again."""
    member = Member()
    member.newest = of_partitions(PUMP)
    watch = member.watch()
    watch.beat(2.0, BEATS)
    member.runs = False
    for _ in range(count):
        watch.beat(2.0, BEATS)
    answers = [watch.live(BEATS)["ok"], watch.ready(BEATS)["ok"], watch.status(BEATS)["ok"]]
    silent_s = watch.live(BEATS)["event_loop_silent_s"]

    assert answers == [is_live] * 3
    assert silent_s == 2.0 * count
    assert watch.live(BEATS)["store_thread_silent_s"] == 0


def test_a_thread_is_asked_ten_times_within_live_within():
    """So one that is silent for as long as that, and no shorter, is blocked."""
    asked: list[tuple[float, float, int]] = []

    class Noting:
        def beat(self, beat_s, beats_max):
            asked.append((asyncio.get_running_loop().time(), beat_s, beats_max))

    async def scenario():
        health = HealthServer("0", live_within=timedelta(minutes=1))
        health._watches = {Member().watch()._member: Noting()}  # type: ignore[dict-item]
        with suppress(TimeoutError):
            async with asyncio.timeout(59):
                await health._beat()

    run_virtual(scenario())

    assert asked == [(6.0 * number, 6.0, 10) for number in range(10)]


def test_a_processor_that_has_failed_is_neither_live_nor_ready_and_both_name_the_cause(caplog):
    """Its threads may have ended by then, which is no news: a restart would help."""
    member = Member()
    member.newest = of_partitions(PUMP)
    watch = member.watch()
    member.failure, member.runs = "it has failed: OSError('disk')", False
    for _ in range(2 * BEATS):
        watch.beat(2.0, BEATS)
    answers = [watch.live(BEATS), watch.ready(BEATS), watch.status(BEATS)]

    assert [(answer["ok"], answer["reasons"]) for answer in answers] == [
        (False, ["it has failed: OSError('disk')"])
    ] * 3
    assert not caplog.records


def test_a_thread_that_has_ended_is_not_mistaken_for_a_later_one_with_its_id():
    """Ids of threads are used again: the places of another thread would be shown as its own."""
    answers: list[Callable[[], None]] = []
    watched = _WatchedThread("store thread", answers.append, get_logger("eventproc.health"))
    watched.beat(2.0, BEATS)
    first = threading.Thread(target=answers[0])
    first.start()
    first.join()
    goes_on = threading.Event()
    for _ in range(20):  # One of them has the id.
        threading.Thread(target=goes_on.wait, daemon=True).start()
    for _ in range(BEATS):
        watched.beat(2.0, BEATS)
    (reason,) = watched.reasons(BEATS)
    goes_on.set()

    assert reason == "the store thread has not run for 6 s: its thread has ended"


def test_a_thread_is_asked_again_only_after_it_has_answered():
    """Otherwise a blocked loop would get a callback for each check."""
    asked: list[Callable[[], None]] = []
    watched = _WatchedThread("event loop", asked.append, get_logger("eventproc.health"))
    for _ in range(3):
        watched.beat(2.0, BEATS)
    silent_s = [watched.silent_s]
    asked[0]()
    silent_s.append(watched.silent_s)
    watched.beat(2.0, BEATS)

    assert [*silent_s, watched.silent_s] == [6.0, 0.0, 2.0]
    assert len(asked) == 2


def test_a_thread_that_has_never_run_is_called_so():
    """There is no place to show."""
    watched = _WatchedThread("store thread", lambda _: None, get_logger("eventproc.health"))
    for _ in range(BEATS):
        watched.beat(2.0, BEATS)

    assert watched.reasons(BEATS) == [
        "the store thread has not run for 6 s: it has not begun",
    ]


def test_status_gives_the_reason_of_a_partition_that_is_not_served_once():
    """`/ready` and `/partitions` give it in different words."""
    member = Member()
    watch = member.watch()
    member.newest = of_partitions(replace(PUMP, receiver_failing_seconds=13.0))
    status = watch.status(BEATS)

    (reason,) = status["reasons"]
    assert reason.startswith("partition 3 is not served: no events for 13 s")
    assert status["partitions"][0]["reasons"]
