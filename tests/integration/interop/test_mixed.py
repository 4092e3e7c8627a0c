"""A group of processors of every SDK, and the ledger that judges it."""

from random import Random

import pytest

from tests.integration.emulator.foreign_clients import command_of

from .ledger import History, judged
from .members import JAVASCRIPT
from .mixed import mixed


def said(*lines):
    """Return lines of partition 0: ``open``, ``close``, an event, or a checkpoint as ``=5``."""
    words: dict[str, dict[str, object]] = {"open": {"opened": "0"}, "close": {"closed": "0"}}
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


LEAVES = said((1, "open"), (2, "5"), (4, "close"))
SITUATIONS = {
    "each handled once": ([History("ours 0", LEAVES)], [], 0),
    "nobody handles it": ([History("ours 0", said((1, "open")))], ["lost: ('0', 5)"], 0),
    "the one before was killed": (
        [
            History("ours 0", said((1, "open"), (2, "5")), [(3, 9)]),
            History("go 1", said((6, "open"), (7, "5"))),
        ],
        [],
        1,
    ),
    "a foreign SDK steals it": (
        [History("ours 0", LEAVES), History("go 1", said((3, "open"), (5, "5")))],
        [],
        1,
    ),
    "a stop cuts a foreign SDK's checkpoint": (
        [
            History("python 0", said((1, "open"), (1, "4"), (1, "=4"), (2, "5"), (4, "close"))),
            History("go 1", said((5, "open"), (6, "5"))),
        ],
        [],
        1,
    ),
    "a foreign SDK opens it twice": (
        [History("java 0", said((1, "open"), (2, "5"), (3, "open"), (4, "5")))],
        [],
        1,
    ),
    "ours opens it twice": (
        [History("ours 0", said((1, "open"), (2, "5"), (3, "open"), (4, "5")))],
        ["unexplained"],
        0,
    ),
    "it was checkpointed": (
        [
            History("python 0", said((1, "open"), (2, "5"), (3, "=5"), (4, "close"))),
            History("go 1", said((5, "open"), (6, "5"))),
        ],
        ["unexplained"],
        0,
    ),
    "ours stops": (
        [History("ours 0", LEAVES), History("go 1", said((5, "open"), (6, "5")))],
        ["unexplained"],
        0,
    ),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_ledger_tells_explained_repeats_from_others(situation):
    """What is lost, and what one of two members should not have handled."""
    histories, expected, explained = SITUATIONS[situation]
    published = {("0", 5)} | {
        ("0", line["sequence_number"]) for h in histories for line in h.said if "handled" in line
    }
    wrong, figures = judged(published, histories)

    assert [line[: len(e)] for line, e in zip(wrong, expected, strict=True)] == expected
    repeats = ("after_faults", "after_steals", "after_reopens", "after_cut_stops")
    assert sum(figures[reason] for reason in repeats) == explained


@pytest.mark.long
@pytest.mark.timeout(500)
def test_processors_of_every_sdk_share_a_group_through_faults():
    """Nothing is lost, no repeat is unexplained, shares are even in the end, and nothing moves."""
    for sdk in ("java", "go"):
        command_of(sdk)
    if not (JAVASCRIPT / "node_modules").exists():
        pytest.skip("needs `npm ci` in tests/integration/emulator/javascript")

    assert mixed(120, Random(2), print) == []
