"""Dead letters in a list: for tests."""

from eventproc.deadletter import DeadLetter
from eventproc.errors import DeadLetterError
from eventproc.ports import DeadLetterSink


class MemoryDeadLetterSink(DeadLetterSink):
    """Keeps letters in ``letters``, one for each event, in the order in which they came first."""

    def __init__(self) -> None:
        self._letter_by_id: dict[str, DeadLetter] = {}
        self.is_out = False
        """Set it, and nothing is stored until it is taken back."""

    @property
    def letters(self) -> list[DeadLetter]:
        """What is stored."""
        return list(self._letter_by_id.values())

    async def open(self) -> None:
        """Nothing to connect to."""

    async def close(self) -> None:
        """Nothing to let go of."""

    async def store(self, letter: DeadLetter) -> None:
        """Keep it."""
        if self.is_out:
            raise DeadLetterError("the sink does not answer: an outage is staged")
        self._letter_by_id[letter.letter_id] = letter
