"""What is said of one processor, from what it and its threads say."""

from dataclasses import replace

import pytest

from eventproc.health.watch import UNREAD, Watch
from eventproc.logs import get_logger
from eventproc.models import ConsumerGroup
from eventproc.ports import WatchedMember
from eventproc.statistics import GroupStatistics, Phase
from tests.unit.eventproc.core.test_health import PUMP, of_partitions

BEATS = 3


class Member:
    """A processor whose threads answer, and whose statistics can be read, as it is told."""

    def __init__(self) -> None:
        self.newest: GroupStatistics | None = None
        self.runs = True

    def watch(self) -> Watch:
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
            statistics=lambda: self.newest,
            shown=str,
            ping_loop=ping,
            ping_store=lambda answer: answer(),
            meter_provider=None,
        )
        return Watch(member, get_logger("eventproc.health"))


def test_statistics_that_change_while_they_are_read_are_those_of_before():
    """A busy processor is no reason for a red answer; only one that was never read is."""
    member = Member()
    watch = member.watch()
    unread = [watch.ready(BEATS)["reasons"], watch.partitions()["reasons"]]
    stalled = replace(PUMP, is_stalled=True, progress_age_seconds=400.0)
    member.newest = of_partitions(stalled)
    read = watch.partitions()
    member.newest = None

    assert unread == [[UNREAD], [UNREAD]]
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
