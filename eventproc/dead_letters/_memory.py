"""Sinks of dead letters without a service: in memory, for tests, and a function of the user."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Self

from eventproc._base.logs import error_text
from eventproc._base.settings import checked
from eventproc._base.threads import in_own_thread
from eventproc.errors import DeadLetterError
from eventproc.models import DeadLetter, StoredLetter
from eventproc.models._dead_letter import event_of
from eventproc.ports import DeadLetterReader, DeadLetterSink


class MemoryDeadLetterSink(DeadLetterSink):
    """Keeps dead letters in ``letters``, one for each event, in the order of arrival."""

    def __init__(self) -> None:
        self._letter_by_event: dict[object, DeadLetter] = {}
        self.is_out = False
        """Set it to true to simulate an outage: ``store`` then raises."""

    @property
    def letters(self) -> list[DeadLetter]:
        """The letters that are stored."""
        return list(self._letter_by_event.values())

    async def store(self, letter: DeadLetter) -> None:
        """Keep the letter; it replaces a letter of the same event.

        Raises:
            DeadLetterError: ``is_out`` is true.
        """
        if self.is_out:
            raise DeadLetterError("the sink does not answer: is_out is true")
        self._letter_by_event[event_of(letter)] = letter

    def discard(self, letter: DeadLetter) -> bool:
        """Remove this letter; return whether it was there, and not replaced."""
        event = event_of(letter)
        if self._letter_by_event.get(event) is not letter:
            return False
        del self._letter_by_event[event]
        return True


class MemoryDeadLetterReader(DeadLetterReader):
    """Reads the letters of a ``MemoryDeadLetterSink`` of the same process."""

    def __init__(self, sink: MemoryDeadLetterSink) -> None:
        self._sink = sink

    async def open(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""

    async def letters(self) -> AsyncIterator[StoredLetter]:
        """Yield the letters that the sink has now."""
        self._check()
        letters = self._sink.letters
        letters.sort(
            key=lambda each: (each.group.key, each.partition_id, each.event.sequence_number)
        )
        for letter in letters:
            yield StoredLetter(place=letter.letter_id, letter=letter)

    async def remove(self, stored: StoredLetter) -> bool:
        """Remove a letter, unless another one of its event has replaced it."""
        self._check()
        assert stored.letter is not None, "none in memory is damaged"
        return self._sink.discard(stored.letter)

    def _check(self) -> None:
        if self._sink.is_out:
            raise DeadLetterError("the sink does not answer: is_out is true")


class FunctionDeadLetterSink(DeadLetterSink):
    """Awaits a function with each dead letter. The letter is stored when the function returns.

    If the function raises, the letter is not stored, and the function is called again later.
    """

    @checked
    def __init__(self, function: Callable[[DeadLetter], Awaitable[None]]) -> None:
        self._function = function

    @classmethod
    def blocking(cls, function: Callable[[DeadLetter], None]) -> Self:
        """Build a sink from an ordinary function, which is called in another thread."""

        async def take(letter: DeadLetter) -> None:
            await in_own_thread(partial(function, letter), "eventproc-dead-letter")

        return cls(take)

    async def store(self, letter: DeadLetter) -> None:
        """Await the function with the letter.

        Raises:
            DeadLetterError: the function raised.
        """
        try:
            await self._function(letter)
        except Exception as error:
            raise DeadLetterError(
                f"the function for dead letters failed: {error_text(error)}"
            ) from error
