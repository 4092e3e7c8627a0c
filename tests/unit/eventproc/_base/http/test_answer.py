"""``verdict``: one answer for several processors."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eventproc._base.http.address import verdict

ENTRIES = st.lists(st.fixed_dictionaries({"ok": st.booleans()}))


@given(ENTRIES)
def test_an_answer_is_green_if_each_processor_is(entries):
    """Without any it is green: there is nothing to complain of."""
    answer = verdict(entries)

    assert answer.status == (503 if {"ok": False} in entries else 200)
    assert answer.body == {"ok": answer.status == 200, "processors": entries}


@given(ENTRIES, ENTRIES)
def test_the_answers_of_several_processes_are_joined_by_their_lists(one, other):
    """The joined answer is the one that a single process would give for all."""
    bodies: list[Any] = [verdict(each).body for each in (one, other)]
    joined = verdict(entry for body in bodies for entry in body["processors"])

    assert joined == verdict([*one, *other])
