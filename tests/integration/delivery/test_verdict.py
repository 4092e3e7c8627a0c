"""The judge of a storm: what it lets pass, and what it does not."""

import pytest

from tests.integration.delivery.verdict import (
    Blow,
    Exit,
    Handled,
    again_in_calm,
    bad_lines,
    lost,
    odd_exits,
    passed_over,
    unexplained,
)


def handled(*told: tuple[str, int, float]) -> list[Handled]:
    """Events of one partition: by whom, which, when."""
    return [
        Handled(owner_id=owner_id, partition_id="0", number=number, at_s=at_s)
        for owner_id, number, at_s in told
    ]


def blow(kind: str, owner_id: str, begun_s: float, ended_s: float) -> Blow:
    """Something that happened."""
    return Blow(kind=kind, owner_id=owner_id, begun_s=begun_s, ended_s=ended_s)


def test_what_nobody_handled_is_lost():
    """However often something else was."""
    assert len(list(lost(handled(("a", 0, 1), ("a", 0, 2)), {"0": 2}))) == 1
    assert list(lost(handled(("a", 0, 1), ("b", 1, 2)), {"0": 2})) == []


def test_what_comes_before_one_below_it_breaks_the_order():
    """To come again from an earlier position breaks nothing."""
    assert list(passed_over(handled(("a", 0, 1), ("a", 1, 2), ("b", 0, 3), ("b", 1, 4)))) == []
    assert len(list(passed_over(handled(("a", 0, 1), ("a", 2, 2))))) == 1


@pytest.mark.parametrize(
    ("blows", "is_explained"),
    [
        ([], False),
        ([blow("kill", "a", 11, 11)], True),
        ([blow("kill", "b", 11, 11)], False),
        ([blow("kill", "a", 15, 15)], False),
        ([blow("kill", "a", 3, 3)], False),
        ([blow("freeze", "a", 9, 19)], True),
        ([blow("freeze", "b", 2, 19)], True),
        ([blow("freeze", "b", 2, 9)], False),
        ([blow("freeze", "c", 9, 19)], False),
        ([blow("outage", "", 11, 19)], True),
        ([blow("outage", "", 15, 19)], False),
    ],
)
def test_what_comes_again_is_explained_by_what_struck_its_owner(blows, is_explained):
    """Before its position was stored, or while the one that told last slept."""
    twice = handled(("a", 7, 10.0), ("b", 7, 20.0))
    found = list(unexplained(twice, blows, stored_within_s=3, lasts_s=6))

    assert bool(found) is not is_explained


def test_in_calm_nothing_comes_again():
    """Whatever may have come again before."""
    told = handled(("a", 4, 1), ("b", 4, 2), ("a", 5, 3), ("b", 5, 4))

    assert len(list(again_in_calm(told, {"0": 5}))) == 1


OUTAGE = blow("outage", "", 10, 12)


@pytest.mark.parametrize(
    ("code", "asked_s", "ended_s", "output", "blows", "is_right"),
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
def test_an_exit_code_must_say_what_happened(code, asked_s, ended_s, output, blows, is_right):
    """By it a supervisor restarts, or does not."""
    end = Exit(
        owner_id="a", code=code, begun_s=1.0, asked_s=asked_s, ended_s=ended_s, output=output
    )

    assert bool(list(odd_exits([end], blows))) is not is_right


@pytest.mark.parametrize(
    "line", ["Traceback (most recent call last):", "Task was destroyed but it is pending!"]
)
def test_an_error_that_was_dropped_is_found(line):
    """In whichever process's output, wherever in it."""
    assert len(list(bad_lines({"a": f"x\n{line}\n", "b": "fine"}))) == 1
