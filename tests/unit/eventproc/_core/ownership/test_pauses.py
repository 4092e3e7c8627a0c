"""The pauses of a group: what an operator pauses and resumes, and the record of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc._core.ownership.pauses import (
    NO_PAUSES,
    REASON_MAX,
    Pause,
    Pauses,
    pauses_in,
    unreadable,
)
from eventproc.errors import ConfigurationError, StoreCorruptError

NOW = datetime(2026, 1, 31, 8, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
IDS = ("0", "1", "2", "7")
NAMED = st.none() | st.frozensets(st.sampled_from(IDS), min_size=1, max_size=2)
ACTIONS = st.lists(st.tuples(st.booleans(), NAMED))


def test_a_pause_of_a_partition_is_of_that_one_alone():
    """With its reason, and the time at which it began."""
    pauses = NO_PAUSES.paused(["1"], NOW, "INC-1")

    assert pauses.of("1") == Pause(since=NOW, reason="INC-1")
    assert pauses.of("0") is None


def test_a_pause_of_the_group_is_of_every_partition():
    """Also of one that is added later."""
    pauses = NO_PAUSES.paused(None, NOW, "move")

    assert pauses.of("99") == Pause(since=NOW, reason="move")


@pytest.mark.parametrize("ids", [None, ["1"]])
def test_what_is_paused_again_stays_so_since_the_first_time(ids):
    """The newest reason counts."""
    pauses = NO_PAUSES.paused(ids, NOW, "first").paused(ids, LATER, "second")

    assert pauses.of("1") == Pause(since=NOW, reason="second")


def test_a_partition_cannot_resume_while_the_whole_group_is_paused():
    """It would stay paused, so the operator is told."""
    pauses = NO_PAUSES.paused(["1"], NOW, "own").paused(None, NOW, "move")

    with pytest.raises(ConfigurationError, match=r"whole group is paused \('move'\).*partition 1"):
        pauses.resumed(["1"])
    assert pauses.resumed(None) == NO_PAUSES


def test_what_has_ended_is_what_is_not_paused_any_more():
    """The group, and each partition, by itself."""
    before = NO_PAUSES.paused(["1", "2"], NOW, "own").paused(None, NOW, "move")
    without_group = replace(before, group=None)

    assert before.without(replace(before, by_partition={})) == without_group
    assert before.without(without_group) == replace(before, by_partition={})


def test_a_reason_with_half_a_character_is_kept_without_it():
    """A browser's JSON may have one, and an argument of a terminal that is not UTF-8."""
    pauses = NO_PAUSES.paused(["1"], NOW, "caf\udce9")

    assert pauses_in(pauses.as_bytes()).of("1") == Pause(since=NOW, reason="caf?")


@pytest.mark.parametrize("reason", ["", "  ", "x" * (REASON_MAX + 1)])
def test_a_pause_needs_a_reason(reason):
    """Whoever finds a group paused has to know why."""
    with pytest.raises(ConfigurationError, match="1 to 500"):
        NO_PAUSES.paused(None, NOW, reason)


@pytest.mark.parametrize("none_named", [[], (), set(), "", "12"])
def test_a_collection_without_partitions_is_not_the_whole_group(none_named):
    """A filter that found nothing neither pauses nor resumes everything; text is no list of ids."""
    whole = NO_PAUSES.paused(None, NOW, "move")

    with pytest.raises(ConfigurationError, match="partition_ids"):
        NO_PAUSES.paused(none_named, NOW, "x")
    with pytest.raises(ConfigurationError, match="partition_ids"):
        whole.resumed(none_named)


@given(ACTIONS)
def test_any_pauses_survive_their_record(actions):
    """What is written is read again."""
    pauses = Pauses()
    for is_pause, ids in actions:
        if is_pause:
            pauses = pauses.paused(ids, NOW, "naïve ☂")
        elif pauses.group is None or ids is None:
            pauses = pauses.resumed(ids)
            assert not any(pauses.of(p) for p in ids or IDS)

    assert pauses_in(pauses.as_bytes()) == pauses


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"version":1,"group":{"since":"x","reason":""},"partitions":{}}',
        b'{"version":1,"group":{"since":"2026-01-31T08:00:00","reason":""},"partitions":{}}',
        b'{"version":1,"group":null,"partitions":[]}',
        b'{"version":1e999,"group":null,"partitions":{}}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_record_is_no_end_of_a_pause(content):
    """The error has the remedy, and the whole group counts as paused."""
    with pytest.raises(StoreCorruptError, match="resume the whole group") as caught:
        pauses_in(content)

    assert unreadable(caught.value, NOW).of("0") == Pause(since=NOW, reason=str(caught.value))


def test_a_record_of_a_later_version_is_not_guessed_at():
    """It may say something that this version does not know."""
    with pytest.raises(StoreCorruptError, match="version 2"):
        pauses_in(b'{"version":2}')
