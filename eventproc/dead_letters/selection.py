"""Selects dead letters by id, partition, time, error and group."""

from dataclasses import dataclass
from datetime import datetime

from eventproc.models import DeadLetter, StoredLetter
from eventproc.ports import DeadLetterReader
from eventproc.settings import check_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterFilter:
    """Matches the letters for which every condition that is set is true; by default all."""

    letter_ids: frozenset[str] = frozenset()
    partition_ids: frozenset[str] = frozenset()
    since: datetime | None = None
    """Given up at this time or later, on the clock of the processor that gave the event up."""

    until: datetime | None = None
    """Given up before this time."""

    error: str = ""
    """A part of the error's class or message, whatever the case."""

    fully_qualified_namespace: str = ""
    eventhub_name: str = ""
    consumer_group: str = ""

    def __post_init__(self) -> None:
        """Check the values; a ``ConfigurationError`` says how to correct them."""
        check_settings(self)

    @property
    def matches_all(self) -> bool:
        """Whether no condition is set."""
        return self == LetterFilter()

    def matches(self, stored: StoredLetter) -> bool:
        """Whether the letter matches. A damaged one matches only if no condition is set."""
        return self.matches_all if stored.letter is None else self._matches(stored.letter)

    def _matches(self, letter: DeadLetter) -> bool:
        namespace, hub, group = letter.group.key
        error = self.error.lower()
        return (
            _is_any(letter.letter_id, self.letter_ids)
            and _is_any(letter.partition_id, self.partition_ids)
            and (self.since is None or letter.given_up_at >= self.since)
            and (self.until is None or letter.given_up_at < self.until)
            and (error in letter.error_type.lower() or error in letter.error_message.lower())
            and self.fully_qualified_namespace.lower() in {"", namespace}
            and self.eventhub_name.lower() in {"", hub}
            and self.consumer_group.lower() in {"", group}
        )


def _is_any(value: str, wanted: frozenset[str]) -> bool:
    return not wanted or value in wanted


async def matching(
    reader: DeadLetterReader,
    wanted: LetterFilter | None = None,
    *,
    letters_max: int | None = None,
) -> list[StoredLetter]:
    """Read the letters that match *wanted*; by default all, including damaged ones.

    Args:
        reader: The reader of the sink; it must be open.
        wanted: Which letters.
        letters_max: Most letters; a reader that reads letter by letter then reads no others.

    Raises:
        DeadLetterError: the sink does not answer.
    """
    condition = wanted or LetterFilter()
    found: list[StoredLetter] = []
    async for stored in reader.letters():
        if condition.matches(stored):
            found.append(stored)
        if len(found) == letters_max:
            break
    return found
