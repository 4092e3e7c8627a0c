"""The checks of a storm: what they accept and what they report."""

import pytest

from tests.integration.delivery.storm_checks import (
    Exit,
    Fault,
    Handled,
    error_lines,
    lost_events,
    out_of_order,
    repeats_in_calm,
    unexplained_repeats,
    wrong_exit_codes,
)


def handled(*events: tuple[str, int, float]) -> list[Handled]:
    """Return handled events of one partition, each from owner id, number and time."""
    return [
        Handled(owner_id=owner_id, partition_id="0", number=number, at_s=at_s)
        for owner_id, number, at_s in events
    ]


def fault(kind: str, owner_id: str, begun_s: float, ended_s: float) -> Fault:
    """Return a fault."""
    return Fault(kind=kind, owner_id=owner_id, begun_s=begun_s, ended_s=ended_s)


def test_an_event_that_was_not_handled_is_lost():
    """Each published event must be handled; repeats of others do not make up for it."""
    assert len(list(lost_events(handled(("a", 0, 1), ("a", 0, 2)), {"0": 2}))) == 1
    assert list(lost_events(handled(("a", 0, 1), ("b", 1, 2)), {"0": 2})) == []


def test_an_event_handled_before_an_earlier_one_is_out_of_order():
    """A repeat from an earlier position is not."""
    assert list(out_of_order(handled(("a", 0, 1), ("a", 1, 2), ("b", 0, 3), ("b", 1, 4)))) == []
    assert len(list(out_of_order(handled(("a", 0, 1), ("a", 2, 2))))) == 1


@pytest.mark.parametrize(
    ("faults", "is_explained"),
    [
        ([], False),
        ([fault("kill", "a", 11, 11)], True),
        ([fault("kill", "b", 11, 11)], False),
        ([fault("kill", "a", 15, 15)], False),
        ([fault("kill", "a", 3, 3)], False),
        ([fault("freeze", "a", 9, 19)], True),
        ([fault("freeze", "b", 2, 19)], True),
        ([fault("freeze", "b", 2, 9)], False),
        ([fault("freeze", "c", 9, 19)], False),
        ([fault("outage", "", 11, 19)], True),
        ([fault("outage", "", 15, 19)], False),
    ],
)
def test_a_repeat_is_explained_by_a_fault_of_its_processes(faults, is_explained):
    """The first process had a fault before it stored the position, or the second one was frozen."""
    twice = handled(("a", 7, 10.0), ("b", 7, 20.0))
    found = list(unexplained_repeats(twice, faults, stored_within_s=3, lasts_s=6))

    assert bool(found) is not is_explained


@pytest.mark.parametrize(("resumed_at_s", "is_explained"), [(9.99, True), (9.4, False)])
def test_a_process_that_was_just_resumed_explains_a_repeat(resumed_at_s, is_explained):
    """It ends the event that it was frozen with; the new owner handled that event meanwhile."""
    twice = handled(("a", 7, 10.0), ("b", 7, 10.02))
    faults = [fault("freeze", "b", 1, resumed_at_s)]

    assert bool(list(unexplained_repeats(twice, faults, stored_within_s=3, lasts_s=6))) is not (
        is_explained
    )


@pytest.mark.parametrize(("owner_id", "is_explained"), [("b", True), ("c", False)])
def test_a_freeze_between_noting_the_time_and_the_journal_explains_a_repeat(owner_id, is_explained):
    """The process that comes second in the journal then has the earlier time."""
    twice = handled(("a", 7, 20.0), ("b", 7, 10.0))
    faults = [fault("freeze", owner_id, 10.1, 20.5)]

    assert bool(list(unexplained_repeats(twice, faults, stored_within_s=3, lasts_s=6))) is not (
        is_explained
    )


def test_a_repeat_after_the_faults_is_a_violation():
    """Events of the calm are handled once; repeats of earlier events are allowed."""
    events = handled(("a", 4, 1), ("b", 4, 2), ("a", 5, 3), ("b", 5, 4))

    assert len(list(repeats_in_calm(events, {"0": 5}))) == 1


OUTAGE = fault("outage", "", 10, 12)


@pytest.mark.parametrize(
    ("code", "terminated_s", "ended_s", "output", "faults", "is_right"),
    [
        (0, 5.0, 6.0, "", [], True),
        (0, 5.0, 6.0, "checkpoint_abandoned", [], False),
        (0, None, 6.0, "", [], False),
        (1, 5.0, 6.0, "", [], False),
        (1, 11.0, 13.0, "", [OUTAGE], True),
        (1, None, 13.0, "", [OUTAGE], False),
        (2, 11.0, 13.0, "", [OUTAGE], False),
        (3, None, 11.0, "", [OUTAGE], True),
        (3, None, 6.0, "", [OUTAGE], False),
        (-15, 5.0, 6.0, "", [], False),
    ],
)
def test_an_exit_code_has_to_match_the_faults(
    code, terminated_s, ended_s, output, faults, is_right
):
    """A supervisor decides by the code whether to restart."""
    end = Exit(
        owner_id="a",
        code=code,
        begun_s=1.0,
        terminated_s=terminated_s,
        ended_s=ended_s,
        output=output,
    )

    assert bool(list(wrong_exit_codes([end], faults))) is not is_right


@pytest.mark.parametrize(
    "line", ["Traceback (most recent call last):", "Task was destroyed but it is pending!"]
)
def test_a_line_that_reports_a_dropped_error_is_found(line):
    """A traceback or a destroyed task in the output of any process is a violation."""
    assert len(list(error_lines({"a": f"x\n{line}\n", "b": "fine"}))) == 1
