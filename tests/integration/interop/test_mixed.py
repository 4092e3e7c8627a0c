"""A group of processors of every SDK, and the ledger that judges it."""

import pytest

from tests.integration.emulator.foreign_clients import command_of

from .ledger import REASONS, History, judged
from .members import JAVASCRIPT
from .mixed import SHORT, mixed


def said(*lines):
    """Return lines of partition 0: ``open``, ``close``, ``lose``, an event, or a checkpoint as
    ``=5``."""
    words: dict[str, dict[str, object]] = {
        "open": {"opened": "0"},
        "close": {"closed": "0"},
        "lose": {"closed": "0", "is_lost": True},
    }
    return [
        {"at_s": at_s}
        | (
            words.get(word)
            or {
                "checkpointed" if word.startswith("=") else "handled": "0",
                "sequence_number": int(word.lstrip("=")),
            }
        )
        for at_s, word in lines
    ]


def ours(number, *lines, harmed_s=()):
    """Return the history of a member of this library."""
    return History(f"ours {number}", said(*lines), harmed_s)


def go(number, *lines, harmed_s=()):
    """Return the history of a member of Go's SDK."""
    return History(f"go {number}", said(*lines), harmed_s)


OPENS_LATER = ((11, "open"), (12, "5"))
SITUATIONS = {
    "each handled once": ([ours(0, (1, "open"), (2, "5"), (9, "close"))], None),
    "nobody handles it": ([ours(0, (1, "open"))], "lost: ('0', 5)"),
    "the one before was killed": (
        [ours(0, (1, "open"), (2, "5"), harmed_s=[(3, 99)]), ours(1, *OPENS_LATER)],
        "after_faults",
    ),
    "the one before was killed and had stored it": (
        [ours(0, (1, "open"), (2, "5"), (2, "=5"), harmed_s=[(3, 99)]), go(1, *OPENS_LATER)],
        "unexplained",
    ),
    "the one before was frozen, and handles it later": (
        [
            ours(0, (1, "open"), (15, "5"), (16, "close"), harmed_s=[(3, 14)]),
            ours(1, *OPENS_LATER),
        ],
        "after_faults",
    ),
    "a foreign SDK steals it": (
        [ours(0, (1, "open"), (2, "5"), (14, "close")), go(1, *OPENS_LATER)],
        "after_steals",
    ),
    "a foreign SDK steals it from one that stores and closes meanwhile": (
        [
            go(0, (1, "open"), (2, "5"), (10.5, "=5"), (10.9, "close")),
            go(1, *OPENS_LATER),
        ],
        "after_steals",
    ),
    "a foreign SDK takes it from ours that stores and closes meanwhile": (
        [
            ours(0, (1, "open"), (2, "5"), (10.5, "=5"), (10.9, "close")),
            go(1, *OPENS_LATER),
        ],
        "unexplained",
    ),
    "a foreign SDK steals it, which ours notices before": (
        [ours(0, (1, "open"), (2, "5"), (10, "lose")), go(1, *OPENS_LATER)],
        "after_steals",
    ),
    "ours loses it to ours": (
        [ours(0, (1, "open"), (2, "5"), (10, "lose")), ours(1, *OPENS_LATER)],
        "unexplained",
    ),
    "a foreign SDK steals it when it was stored long ago": (
        [ours(0, (1, "open"), (2, "5"), (3, "=5"), (14, "close")), go(1, *OPENS_LATER)],
        "unexplained",
    ),
    "the one from which it was stolen handles it later": (
        [ours(0, (1, "open"), (13, "5"), (14, "close")), go(1, *OPENS_LATER)],
        "after_steals",
    ),
    "ours opens it before ours has closed it": (
        [ours(0, (1, "open"), (2, "5"), (14, "close")), ours(1, *OPENS_LATER)],
        "unexplained",
    ),
    "a stop cuts a foreign SDK's checkpoint": (
        [
            go(0, (1, "open"), (1, "4"), (1, "=4"), (2, "5"), (4, "close")),
            ours(1, *OPENS_LATER),
        ],
        "after_cut_stops",
    ),
    "a foreign SDK opens it twice": (
        [go(0, (1, "open"), (2, "5"), (3, "open"), (4, "5"))],
        "after_reopens",
    ),
    "a foreign SDK opens it again, with a position from before": (
        [go(0, (1, "open"), (2, "5"), (3, "=5"), (3, "close"), (4, "open"), (4, "5"))],
        "after_reopens",
    ),
    "ours opens it again, with a position from before": (
        [ours(0, (1, "open"), (2, "5"), (3, "=5"), (3, "close"), (4, "open"), (4, "5"))],
        "unexplained",
    ),
    "ours opens it twice": (
        [ours(0, (1, "open"), (2, "5"), (3, "open"), (4, "5"))],
        "unexplained",
    ),
    "a foreign SDK stored it": (
        [go(0, (1, "open"), (2, "5"), (3, "=5"), (4, "close")), ours(1, *OPENS_LATER)],
        "unexplained",
    ),
    "a former owner of a foreign SDK moves the position back": (
        [
            go(0, (1, "open"), (2, "4"), (6, "=4"), (7, "close")),
            ours(1, (3, "open"), (4, "5"), (5, "=5"), (7, "close")),
            ours(2, *OPENS_LATER),
        ],
        "after_late_checkpoints",
    ),
    "a former owner of ours moves the position back": (
        [
            ours(0, (1, "open"), (2, "4"), (6, "=4"), (7, "close")),
            ours(1, (3, "open"), (4, "5"), (5, "=5"), (7, "close")),
            ours(2, *OPENS_LATER),
        ],
        "unexplained",
    ),
    "ours stops": (
        [ours(0, (1, "open"), (2, "5"), (4, "close")), go(1, *OPENS_LATER)],
        "unexplained",
    ),
    "ours handles it after closing": (
        [ours(0, (1, "open"), (2, "close"), (3, "5"))],
        "handled when closed",
    ),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_ledger_tells_explained_repeats_from_others(situation):
    """What is lost, and what one of two members should not have handled."""
    histories, expected = SITUATIONS[situation]
    published = {("0", 5)} | {
        ("0", line["sequence_number"]) for h in histories for line in h.said if "handled" in line
    }
    wrong, figures, _ = judged(published, histories)

    explained = {reason for reason in REASONS if figures[reason]}
    assert explained | {line[: len(expected or "")] for line in wrong} == {expected} - {None}


def test_the_ledger_counts_positions_that_are_taken_over():
    """By a member of any SDK that begins after the last event that the one before had stored."""
    histories = [
        go(0, (1, "open"), (2, "4"), (2, "=4"), (3, "close")),
        ours(1, (4, "open"), (5, "5"), (5, "=5"), (6, "close")),
        go(2, (7, "open"), (8, "7")),
    ]
    _, _, directions = judged({("0", n) for n in (4, 5, 7)}, histories)

    assert directions == {"go to ours": 1}


@pytest.mark.night
@pytest.mark.timeout(500)
def test_processors_of_every_sdk_share_a_group_through_faults():
    """Nothing is lost, no repeat is unexplained, shares are even in the end, and nothing moves."""
    for sdk in ("java", "go"):
        command_of(sdk)
    if not (JAVASCRIPT / "node_modules").exists():
        pytest.skip("needs `npm ci` in tests/integration/emulator/javascript")

    assert mixed(180, 2, [SHORT], print) == []
