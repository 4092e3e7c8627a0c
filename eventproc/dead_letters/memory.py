"""A sink that keeps dead letters in memory, for tests."""

from eventproc.errors import DeadLetterError
from eventproc.models import DeadLetter
from eventproc.ports import DeadLetterSink


class MemoryDeadLetterSink(DeadLetterSink):
    """Keeps dead letters in ``letters``, one for each event, in the order of arrival."""

    def __init__(self) -> None:
        self._letter_by_id: dict[str, DeadLetter] = {}
        self.is_out = False
        """Set it to true to simulate an outage: ``store`` then raises."""

    @property
    def letters(self) -> list[DeadLetter]:
        """The letters that are stored."""
        return list(self._letter_by_id.values())

    async def store(self, letter: DeadLetter) -> None:
        """Keep the letter; it replaces a letter of the same event.

        Raises:
            DeadLetterError: ``is_out`` is true.
        """
        if self.is_out:
            raise DeadLetterError("the sink does not answer: is_out is true")
        self._letter_by_id[letter.letter_id] = letter
