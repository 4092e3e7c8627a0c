"""The dead-letter sink of the harness, which uses virtual time."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from eventproc.dead_letters import MemoryDeadLetterSink
from eventproc.models import DeadLetter


class HarnessDeadLetters(MemoryDeadLetterSink):
    """Keeps letters in memory, with times by the harness's clock instead of the machine's."""

    def __init__(self, *, now: Callable[[], datetime]) -> None:
        super().__init__()
        self._now = now
        self._given_up_at: dict[str, datetime] = {}

    async def store(self, letter: DeadLetter) -> None:
        """Keep the letter, with the time of the first attempt to store it."""
        given_up_at = self._given_up_at.setdefault(letter.letter_id, self._now())
        await super().store(replace(letter, given_up_at=given_up_at))
        del self._given_up_at[letter.letter_id]
