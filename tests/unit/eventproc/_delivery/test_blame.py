"""Which events of a call an error blames, and which error is reported."""

import pytest

from eventproc._delivery.blame import blamed, checked, shown_error
from eventproc._delivery.handler import BatchError, RowError
from tests.unit.eventproc._core.events import event, events, numbers

FIRST, SECOND, CAUSE = ValueError("first"), ValueError("second"), ValueError("cause")


def after(number):
    """Return what finds the events above this one, as if those up to it were done."""
    return lambda part: [each for each in part if each.sequence_number > number]


def raised_from(error: Exception, cause: Exception) -> Exception:
    """Return the error as if it were raised from the cause."""
    error.__cause__ = cause
    return error


def test_a_batch_error_gives_each_event_its_own_error():
    """Events that it names as not tried are neither failed nor done."""
    error = BatchError([(event(2), FIRST), (event(5), SECOND)], untried=[event(6)])
    report = blamed(events(range(1, 8)), error, after(0))

    assert report.failed == {2: FIRST, 5: SECOND}
    assert [numbers(part) for part in report.done] == [[1], [3, 4], [7]]
    assert not report.suspect


def test_a_row_error_counts_rows_of_the_whole_call():
    """Also after ``done`` of its first events."""
    error = raised_from(RowError(3), CAUSE)
    report = blamed(events(range(10, 16)), error, after(11))

    assert report.failed == {13: CAUSE}
    assert [numbers(part) for part in report.done] == [[12], [14, 15]]


def test_an_error_that_names_no_event_blames_those_that_are_not_done():
    """One of them failed; if there is only one, it is that one."""
    several = blamed(events(range(1, 5)), FIRST, after(2))
    last = blamed(events(range(1, 5)), FIRST, after(3))

    assert (numbers(several.suspect), several.failed, several.done) == ([3, 4], {}, ())
    assert (last.suspect, last.failed) == ((), {4: FIRST})


@pytest.mark.parametrize(("rows", "is_wrong"), [((0, 2), False), ((0, 3), True), ((7,), True)])
def test_a_row_error_has_to_name_rows_of_its_call(rows, is_wrong):
    """The error that is reported instead says so, and has the other as its cause."""
    error = RowError(*rows)
    found = checked(error, events(range(3)))

    assert isinstance(found, ValueError) == is_wrong
    assert (found.__cause__ if is_wrong else found) is error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (BatchError([(event(1), FIRST)]), FIRST),
        (raised_from(RowError(1), CAUSE), CAUSE),
        (RowError(1, error=SECOND), SECOND),
        (CAUSE, CAUSE),
    ],
    ids=["one event", "cause of rows", "error of rows", "other"],
)
def test_the_error_that_is_reported_is_the_one_of_the_event(error, expected):
    """``process_error`` and the log show what went wrong, and not how it was passed on."""
    assert shown_error(error) is expected
