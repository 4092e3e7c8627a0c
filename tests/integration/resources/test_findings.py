"""What the log of a fence shows, of made-up messages: a check that cannot fail shows nothing."""

import json
from collections import Counter
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from tests.integration.resources import report
from tests.integration.resources.bounds import Bounds
from tests.integration.resources.fence import FenceServer, Message
from tests.integration.resources.findings import Findings, find
from tests.integration.resources.journal import Journal, JournalWriter, length_s
from tests.integration.resources.storm import Process

BOUNDS = Bounds(is_on_blobs=False)


def _process(pid: int, **known: Any) -> Process:
    popen: Any = SimpleNamespace(pid=pid)
    return Process(**{"owner_id": f"p{pid}", "popen": popen, "started_s": 0.0} | known)


def _journal(
    began_s: Mapping[int, float] | None = None,
    ended_s: Mapping[int, tuple[float, float]] | None = None,
    waits: list[tuple[float, float]] | None = None,
) -> Journal:
    """Return what was noted of the name a, by epoch."""
    return Journal(
        {("a", epoch): at_s for epoch, at_s in (began_s or {}).items()},
        {("a", epoch): span for epoch, span in (ended_s or {}).items()},
        waits or [],
    )


def _messages(text: str) -> list[Message]:
    """Read ``time pid:epoch`` items; ``!`` marks one that the server refused."""
    read = []
    for item in text.split(", "):
        at, sender = item.rstrip("!").split()
        pid, epoch = map(int, sender.split(":"))
        read.append(Message(float(at), "a", epoch, f"p{pid}", pid, not item.endswith("!")))
    return read


def _changes(log: str, *processes: Process) -> list[tuple[str, float, float]]:
    return [
        (c.cause, round(c.closed_s, 3), round(c.protocol_s, 3))
        for c in find(_messages(log), processes, BOUNDS).changes
    ]


@pytest.mark.parametrize(
    ("log", "violation"),
    [
        ("1 1:5, 2 2:6, 3 1:5", "accepted below 6"),
        ("1 1:5, 2 2:5", "two holders of one epoch"),
        ("1 1:5, 2 1:5!", "refused, but the highest was 5"),
        ("1 3:5, 2 2:6, 3 3:5!", "overlap without a freeze"),
        ("4 1:5, 5 2:6, 6 1:5!", "overlap without a freeze"),
        ("1 1:5, 2 2:6, 4 1:5!", "overlap 1.5 s after the wake"),
        ("1 3:5, 2 2:6, 3 2:6", "a: hold began 0.250 s before"),
    ],
)
def test_the_findings_show(log, violation):
    """Process 1 was frozen from 1.5 to 2.5, and process 3 never."""
    processes = [
        _process(1, frozen=[(1.5, 2.5)]),
        _process(2, journal=_journal({6: 1.75})),
        _process(3, journal=_journal(ended_s={5: (1.0, 2.0)})),
    ]

    found = find(_messages(log), processes, BOUNDS)

    assert any(violation_found.startswith(violation) for violation_found in found.violations)


def test_a_message_of_a_holder_that_woke_up_is_an_overlap_and_no_violation():
    """It is refused. Its hold ended after the next one began, as that of a frozen process may."""
    former = _process(1, frozen=[(1.5, 2.5)], journal=_journal(ended_s={5: (2.8, 2.9)}))
    log = "1.4 1:5, 2 2:6, 2.75 1:5!, 2.8 1:5!, 3 2:6"
    found = find(_messages(log), [former, _process(2, journal=_journal({6: 1.9}))], BOUNDS)

    assert (found.violations, len(found.refused), found.overlap_count) == ([], 2, 1)
    assert found.after_wake_s == pytest.approx([0.25, 0.3])


def test_a_planned_change_is_measured_without_the_handlers_and_their_waits():
    """Closing took 0.125, opening 0.25; both waited for 0.125 of what is left."""
    former = _process(1, journal=_journal(ended_s={5: (1.0, 1.125)}, waits=[(1.0, 1.1875)]))
    next_ = _process(2, journal=_journal({6: 1.75}, waits=[(1.1, 1.15), (1.6875, 2.0)]))

    assert _changes("1 1:5, 2 2:6", former, next_) == [("planned", 1.0, 0.5)]


def test_a_name_is_closed_from_the_crash_of_its_holder():
    """A wait before the record has expired does not count."""
    next_ = _process(2, journal=_journal({6: 23.5}, waits=[(22.0, 22.5), (23.25, 23.5)]))

    assert _changes("21 1:5, 24 2:6", _process(1, killed_s=21.0), next_) == [("crash", 3.0, 2.25)]


@pytest.mark.parametrize(
    ("other", "closed_s"),
    [({"killed_s": 22.0}, 2.0), ({"frozen": [(22.0, 30.0)]}, 2.0), ({"frozen": [(18, 22)]}, 3.0)],
)
def test_after_several_faults_the_last_one_counts(other, closed_s):
    """It may have struck the process that was about to take the name."""
    processes = [_process(1, killed_s=21.0), _process(2), _process(3, **other)]
    change = ("crash, beside other events", closed_s, closed_s)

    assert _changes("21 1:5, 24 2:6", *processes) == [change]


@pytest.mark.parametrize("other", [{"terminated_s": 20.0}, {"frozen": [(10.0, 20.0)]}])
def test_a_leave_or_a_wake_beside_a_crash_is_another_event(other):
    """The others wait until the membership is stable."""
    processes = [_process(1, killed_s=21.0), _process(2), _process(3, **other)]

    assert _changes("21 1:5, 24 2:6", *processes) == [("crash, beside other events", 3.0, 3.0)]


def test_events_before_the_group_was_settled_do_not_count():
    """If it was for a second."""
    processes = [_process(1, killed_s=21.0), _process(2), _process(3, terminated_s=18.0)]
    causes = [
        find(_messages("21 1:5, 23 2:6"), processes, BOUNDS, settled_s).changes[0].cause
        for settled_s in ([20.0, 30.0], [18.5, 30.0])
    ]

    assert causes == ["crash", "crash, beside other events"]


def test_a_change_beside_the_fault_of_another_process_is_not_planned():
    """The next holder may have crashed before it began."""
    processes = [_process(1), _process(2), _process(3, killed_s=21.0)]

    assert _changes("20 1:5, 23 2:6", *processes) == [("planned, beside a fault", 2.0, 2.0)]


@pytest.mark.parametrize(("last_s", "cause"), [(22.25, "crash"), (22.75, "either, and slow store")])
def test_a_slow_store_beside_a_crash_is_another_cause(last_s, cause):
    """The next holder read nothing for half an expiration, so it lets the others renew first."""
    journal = _journal({6: 24.0})
    journal.cycles_s = [21.5, last_s, 23.0]

    changes = _changes("21 1:5, 24 2:6", _process(1, killed_s=21.0), _process(2, journal=journal))

    assert changes == [(cause, 3.0, 3.0)]


@pytest.mark.parametrize(("is_on_blobs", "crash_s"), [(False, 2.825), (True, 4.825)])
def test_the_bounds_are_those_of_the_documentation(is_on_blobs, crash_s):
    """Expiration 2 s, interval 0.5 s and rebalance interval 0.25 s, each at most 10 % longer.

    Four rebalance intervals more beside other events, and three intervals more after an outage, of
    which two are a grace and do not vary.
    """
    bounds = Bounds(is_on_blobs)

    assert bounds.planned_s == 0.5
    assert bounds.passed_on_s == pytest.approx(7 * 0.275)
    assert bounds.crash_s == pytest.approx(crash_s)
    assert bounds.crowded_s == pytest.approx(crash_s + 4 * 0.275)
    assert bounds.outage_s == pytest.approx(crash_s + 4 * 0.275 + 2 * 0.5 + 0.55)


def _violations(log: str, *processes: Process, freeze_count: int = 0) -> list[str]:
    storm: Any = SimpleNamespace(events={"freeze": freeze_count})
    return report.violations(storm, find(_messages(log), processes, BOUNDS), BOUNDS)


@pytest.mark.parametrize(("at_s", "count"), [(23.8, 0), (23.9, 1)])
def test_a_name_that_is_closed_for_too_long_after_a_crash_is_a_violation(at_s, count):
    """The bound is 2.825 s."""
    log = f"21 1:5, {at_s} 2:6"

    assert len(_violations(log, _process(1, killed_s=21.0), _process(2))) == count


@pytest.mark.parametrize(("long_count", "count"), [(1, 0), (2, 1)])
@pytest.mark.parametrize("started_s", [[0.0], [0.1, 0.2]])
def test_one_planned_change_in_a_hundred_may_take_longer(started_s, long_count, count):
    """What is held against the bound is the 99th percentile, also while others come and go."""
    others = [_process(3 + n, started_s=at_s) for n, at_s in enumerate(started_s)]
    log, at_s = ["0 1:1"], 0.0
    for number in range(100):
        at_s += 0.6 if number < long_count else 0.4
        log.append(f"{at_s} {2 - number % 2}:{number + 2}")

    assert len(_violations(", ".join(log), _process(1), _process(2), *others)) == count


@pytest.mark.parametrize(
    ("closed_s", "is_alone", "count"),
    [(0.45, True, 0), (0.55, True, 1), (0.55, False, 0), (1.9, False, 0), (2.0, False, 1)],
)
def test_a_planned_change_alone_is_quicker_than_one_beside_others(closed_s, is_alone, count):
    """While others come and go, what was handed over may be passed on."""
    processes = [_process(1, terminated_s=20.9), _process(2, started_s=0.0 if is_alone else 20.5)]

    assert len(_violations(f"21 1:5, {21 + closed_s} 2:6", *processes)) == count


@pytest.mark.parametrize(("freeze_count", "count"), [(0, 0), (1, 1)])
def test_a_group_with_freezes_in_which_nothing_was_refused_is_a_violation(freeze_count, count):
    """The fence was not shown then."""
    assert len(_violations("1 1:5", _process(1), freeze_count=freeze_count)) == count


def test_the_tables_show_each_group():
    """Also one in which nothing happened."""
    storm: Any = SimpleNamespace(events=Counter(kill=7), slack_s=0.0)
    found = find(_messages("21 1:5, 23 2:6"), [_process(1, killed_s=21.0), _process(2)], BOUNDS)
    text = report.tables({"one": (storm, found, BOUNDS), "two": (storm, Findings(), BOUNDS)})

    assert [line.split()[:5] for line in text.splitlines() if line.startswith("one")] == [
        ["one", "7", "2", "0", "0"],
        ["one", "crash", "1", "2.00", "2.00"],
        ["one", "kill", "7;", "sleeps", "here"],
    ]


def test_a_diary_is_read_up_to_the_crash_of_its_writer(tmp_path):
    """A process may be killed while it writes a line. Of several holds, the first begin counts."""
    path = tmp_path / "journal"
    writer = JournalWriter(str(path))
    writer.began("a", 5)
    writer.ended("a", 5, 1.0)
    for method in "list_members", "list_ownership", "claim_ownership", "list_members":
        writer.answered(method, 2.0)
    writer.starved(2.0)
    with path.open("a") as file:
        file.write(json.dumps(["began", "a", 5, 1e9]) + "\n" + '["began", "b"')
    journal = Journal.read(path)

    assert [*journal.began_s] == [*journal.ended_s] == [("a", 5)]
    assert journal.began_s["a", 5] < 1e9
    assert [asked_s for asked_s, _ in journal.waits] == [2.0] * 5
    assert journal.cycles_s == [journal.waits[1][1], journal.waits[3][1]]
    assert Journal.read(tmp_path / "none") == Journal()


def test_the_length_of_waits_counts_what_overlaps_once():
    """And each only within the span that is asked for."""
    journal = _journal(waits=[(0.0, 1.0), (2.0, 5.0), (3.0, 4.0), (4.5, 6.0), (9.0, 10.0)])

    assert length_s(journal.waits_within(0.5, 5.5)) == 0.5 + 3.5


def test_the_server_refuses_what_is_below_the_highest_epoch_of_the_name():
    """Other names have fences of their own."""
    server = FenceServer()
    for name, epoch in [("a", 5), ("a", 5), ("a", 6), ("a", 5), ("b", 1), ("a", 6)]:
        server.take(name, epoch, "p1", 1)

    assert [m.is_accepted for m in server.messages] == [True, True, True, False, True, True]
