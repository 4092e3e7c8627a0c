"""The options that choose dead letters."""

from dataclasses import replace
from datetime import timedelta

import pytest

from eventproc._command.arguments.dead_letters import Wanted
from eventproc.models import StoredLetter
from tests.scenarios.dead_letters import GROUP, NOON, letter

WANTED = replace(
    letter(1),
    group=replace(GROUP, eventhub_name="orders", name="billing"),
    partition_id="7",
    error_type="LateError",
    given_up_at=NOON + timedelta(hours=1),
)
OTHERS = {
    "id_": replace(WANTED, event=letter(2).event),
    "partition": replace(WANTED, partition_id="8"),
    "since": replace(WANTED, given_up_at=NOON),
    "until": replace(WANTED, given_up_at=NOON + timedelta(hours=3)),
    "error": replace(WANTED, error_type="ValueError"),
    "eventhub": replace(WANTED, group=replace(WANTED.group, eventhub_name="returns")),
    "consumer_group": replace(WANTED, group=replace(WANTED.group, name="shipping")),
}
"""A letter that only the option of this name leaves out."""

GIVEN = {
    "id_": [WANTED.letter_id],
    "partition": ["7"],
    "since": "2026-01-01T13:00:00Z",
    "until": "2026-01-01T14:00:00Z",
    "error": "late",
    "eventhub": "orders",
    "consumer_group": "billing",
}


@pytest.mark.parametrize("option", GIVEN)
def test_each_option_leaves_out_the_letters_that_it_does_not_name(option):
    """The letters that stay are delivered again, or removed."""
    chosen = Wanted(**{option: GIVEN[option]}).filter()  # type: ignore[arg-type]
    wanted, other = (StoredLetter(place="p", letter=x) for x in (WANTED, OTHERS[option]))

    assert (chosen.matches(wanted), chosen.matches(other)) == (True, False)


def test_without_an_option_every_letter_is_chosen():
    """Also a damaged one, of which nothing is known."""
    chosen = Wanted().filter()

    assert all(chosen.matches(StoredLetter(place="p", letter=x)) for x in OTHERS.values())
    assert chosen.matches(StoredLetter(place="p", letter=None, damage="no JSON", raw=b"?"))
