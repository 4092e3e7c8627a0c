"""What the end of a worker means, from its exit code and how long it ran."""

import itertools
import signal

import pytest

from eventproc._base.retries import failures_in_a_row
from eventproc._command.workers.worker import BACKOFF, STEADY_S, meaning_of, worst

EARLY_S = 1.0


def waits_after(*runs):
    """Return the longest wait after each of these runs."""
    counts = itertools.accumulate(
        runs, lambda before, ran_s: failures_in_a_row(before, ran_s, BACKOFF), initial=0
    )
    return [BACKOFF.wait_s(count, 1.0) for count in list(counts)[1:]]


def test_early_ends_double_the_wait_up_to_a_minute():
    """The wait after the first end is one second."""
    assert waits_after(*[EARLY_S] * 8) == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_worker_that_ran_for_a_minute_begins_again_with_the_shortest_wait():
    """What happened before a good start is no reason to wait."""
    assert waits_after(EARLY_S, EARLY_S, EARLY_S, STEADY_S, EARLY_S) == [1, 2, 4, 1, 2]


@pytest.mark.parametrize(
    ("code", "was_asked", "meaning"),
    [
        (0, True, 0),
        (0, False, 0),
        (1, True, 1),
        (2, False, 2),
        (3, False, 3),
        (-signal.SIGKILL, True, 1),
        (-signal.SIGSEGV, False, 1),
        (-signal.SIGTERM, True, 0),
        (-signal.SIGTERM, False, 1),
        (77, False, 1),
    ],
)
def test_the_end_of_a_process_is_an_exit_code_of_the_command(code, was_asked, meaning):
    """A signal that ends a process is a failure, except for the request to stop itself."""
    assert meaning_of(code, was_asked=was_asked) == meaning


@pytest.mark.parametrize(
    ("codes", "expected"), [((0, 0), 0), ((0, 3), 3), ((3, 1), 1), ((1, 2, 0), 2), ((), 0)]
)
def test_the_worst_exit_code_counts(codes, expected):
    """Wrong input before a failure, a failure before no answer."""
    assert worst(codes) == expected
