"""A fleet without Spark: reports, and what the driver makes of them."""

import json
from dataclasses import replace

import pytest

from eventproc.statistics import ProcessorStatistics, PumpStatistics, Tally
from spark_integration import Phase
from spark_integration.fleet_board import SILENCE_MAX_S, FleetBoard
from spark_integration.fleet_status import Report, decode, encode

STATISTICS = ProcessorStatistics(
    owner_id="orders-0",
    owned=("0", "1"),
    pumps=(
        PumpStatistics(
            partition_id="0",
            sequence_number=41,
            checkpointed_sequence_number=None,
            lag=3,
            lag_seconds=0.5,
            checkpoint_age_seconds=0.0,
            is_paused=False,
            is_stalled=False,
            tally=Tally(handled_count=7),
        ),
    ),
    stopped=(),
    tally=Tally(received_count=8, handled_count=7),
    is_settled=True,
    cycle_count=3,
    cycle_seconds=0.01,
    claim_count=2,
    steal_count=0,
    hand_over_count=0,
    lost_count=0,
    conflict_count=0,
    ownership_write_count=2,
    lease_margin_seconds=None,
)

REPORT = Report(
    slot=0,
    incarnation="a",
    host="here",
    process_id=4711,
    phase=Phase.SERVING,
    statistics=STATISTICS,
    warnings=("handler_failed error=no",),
)


def test_a_report_survives_the_wire():
    """Whatever is in it."""
    ended = Report(
        slot=1, incarnation="b", host="h", process_id=1, phase=Phase.ENDED, error="no", warnings=()
    )

    assert decode(encode(REPORT, "token"), "token") == REPORT
    assert decode(encode(ended, "token"), "token") == ended


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"GET / HTTP/1.1\r\n",
        b"[]\n",
        b"{}\n",
        b'{"token": 7}\n',
        b'{"token": "token"}\n',
        encode(REPORT, "another"),
        json.dumps({**json.loads(encode(REPORT, "token")), "phase": "dancing"}).encode(),
    ],
)
def test_what_is_no_report_is_refused(line):
    """The port is open to whoever can reach the driver."""
    with pytest.raises(ValueError):  # noqa: PT011 - each way has words of its own
        decode(line, "token")


class Clock:
    """Moves when told."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_board_counts_over_restarts():
    """What a member handled before it died stays counted."""
    board = FleetBoard("orders", 2, clock=Clock())
    board.note(REPORT)
    board.note(REPORT)
    board.note(replace(REPORT, incarnation="b"))
    board.note(replace(REPORT, incarnation="c", phase=Phase.STARTING, statistics=None))
    now = board.statistics()

    assert now.handled_count == 14
    assert now.restart_count == 2
    assert [member.phase for member in now.members] == [Phase.STARTING, Phase.WAITING]
    assert str(now) == (
        "fleet orders: 0 of 2 processors live, 0 partitions, 14 events handled, lag unknown, "
        "2 restarts"
    )


def test_one_that_was_replaced_has_lost_its_slot():
    """An executor that Spark took for lost may live on; its processor is told to stop."""
    board = FleetBoard("orders", 1, clock=Clock())

    assert board.note(REPORT)
    assert board.note(replace(REPORT, incarnation="b", process_id=2))
    assert not board.note(REPORT)
    (member,) = board.statistics().members
    assert (member.process_id, member.restart_count) == (2, 1)


def test_who_is_silent_is_not_live():
    """A frozen executor, or one behind a broken network."""
    clock = Clock()
    board = FleetBoard("orders", 1, clock=clock)
    board.note(REPORT)
    before = board.statistics()
    clock.now_s += SILENCE_MAX_S

    assert (before.live_count, before.owned_count, before.lag) == (1, 2, 3)
    assert board.statistics().live_count == 0
    assert board.statistics().lag is None


def test_a_member_whose_loop_is_blocked_is_not_live():
    """It reports, by a thread, but nobody knows how it does."""
    board = FleetBoard("orders", 1, clock=Clock())
    board.note(replace(REPORT, age_seconds=SILENCE_MAX_S))

    assert board.statistics().live_count == 0
    assert board.unheard() == []


def test_who_died_while_it_stopped_was_cut_short():
    """Not so who died before, or told its last word."""
    board = FleetBoard("orders", 3, clock=Clock())
    stopping = replace(REPORT, phase=Phase.STOPPING)
    board.note(replace(stopping, slot=2))
    board.note(replace(REPORT, slot=2, incarnation="b"))
    board.begin_stop()
    board.note(stopping)
    board.note(replace(stopping, slot=1))
    board.note(replace(stopping, slot=2, incarnation="b"))
    board.note(replace(stopping, incarnation="b"))
    for slot, incarnation in enumerate("bab"):
        board.note(replace(REPORT, slot=slot, incarnation=incarnation, phase=Phase.ENDED))

    assert board.cut_short() == [0]


def test_nobody_waits_for_who_is_silent():
    """Its job may be waiting for a core again."""
    clock = Clock()
    board = FleetBoard("orders", 2, clock=clock)
    board.note(REPORT)
    assert board.unheard() == [1]
    clock.now_s += SILENCE_MAX_S + 1
    board.note(replace(REPORT, slot=1))

    assert board.unheard() == [0]


def test_an_error_is_kept_and_told():
    """Of the last word, and of a task without one."""
    board = FleetBoard("orders", 2, clock=Clock())
    board.note(replace(REPORT, phase=Phase.ENDED, error="the store is gone"))
    board.note_failure(1, "worker crashed")
    now = board.statistics()

    assert [member.error for member in now.members] == ["the store is gone", "worker crashed"]
    assert now.warnings == (
        "orders-0: handler_failed error=no",
        "orders-0: the store is gone",
        "orders-1: worker crashed",
    )


def test_what_comes_after_the_last_report_is_older_than_it():
    """The last one comes by Spark, and may overtake one that came by the desk."""
    board = FleetBoard("orders", 1, clock=Clock())
    board.note(REPORT)
    board.begin_stop()
    board.note(replace(REPORT, phase=Phase.ENDED))

    assert not board.note(replace(REPORT, phase=Phase.STOPPING))
    assert board.cut_short() == []
    (member,) = board.statistics().members
    assert member.phase is Phase.ENDED
