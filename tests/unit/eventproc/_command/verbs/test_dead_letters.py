"""Which of the letters of a place a verb removes, if some of them are damaged."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from eventproc._command.arguments.dead_letters import LettersAddress, Wanted
from eventproc._command.arguments.options import ChangeMode
from eventproc._command.verbs.dead_letters import drop
from eventproc.models import StoredLetter
from eventproc.ports import DeadLetterReader
from tests.scenarios.dead_letters import letter


class FakeReader(DeadLetterReader):
    """Has two letters and, between them, what is none."""

    def __init__(self):
        self.left = [
            StoredLetter(place="a", letter=letter(1)),
            StoredLetter(place="b", letter=None, damage="no JSON", raw=b"?"),
            StoredLetter(place="c", letter=letter(2)),
        ]

    async def open(self):
        """Do nothing."""

    async def close(self):
        """Do nothing."""

    async def letters(self):
        """Yield what is left."""
        for stored in [*self.left]:
            yield stored

    async def remove(self, stored):
        """Remove it."""
        self.left.remove(stored)
        return True


@pytest.mark.parametrize(
    ("damaged", "left", "said"), [(False, ["b"], "2 dead letters"), (True, ["a", "c"], "1 dead")]
)
def test_damaged_letters_are_dropped_only_if_asked_for_and_then_alone(damaged, left, said, capsys):
    """Their bytes may be all that is left of an event, and nobody has read them."""
    found = FakeReader()

    class FakeAddress(LettersAddress):
        @asynccontextmanager
        async def reader(self, spec, *, removes):
            yield found

    dropping = drop(
        place="blob:letters",
        address=FakeAddress(),
        wanted=Wanted(),
        damaged=damaged,
        mode=ChangeMode(yes=True),
    )

    assert asyncio.run(dropping) == 0
    assert [stored.place for stored in found.left] == left
    assert capsys.readouterr().out.startswith(said)
