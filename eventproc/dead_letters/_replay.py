"""Chooses dead letters, replays them one by one, and drops them.

Rule 1: a letter is removed after the target has taken its event, never before. If the process dies
in between, the next replay begins with this letter, and only its event is delivered twice.
Rule 2: events of one partition and key are replayed in order. If the target refuses one, the later
ones with its key are not replayed either.
"""

from abc import abstractmethod
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from eventproc._base.resource import AsyncResource
from eventproc._base.settings import check_settings
from eventproc.errors import ConfigurationError, DeadLetterError, LetterRefusedError
from eventproc.models import UNDECODED, DeadLetter, StoredLetter
from eventproc.ports import DeadLetterReader


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
        for name, time in (("since", self.since), ("until", self.until)):
            if time is not None and time.tzinfo is None:
                raise ConfigurationError("give it a time zone", setting=name, value=str(time))

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
    if letters_max == 0:
        return found
    async for stored in reader.letters():
        if condition.matches(stored):
            found.append(stored)
        if len(found) == letters_max:
            break
    return found


class LetterOutcome(Enum):
    """The result for one letter."""

    REPLAYED = "replayed"
    """Its event was taken, and the letter removed."""

    REFUSED = "refused"
    """Its event was not taken. The letter stays."""

    HELD_BACK = "held_back"
    """An earlier event of its key was refused in this replay. The letter stays."""

    DAMAGED = "damaged"
    """It cannot be read. It stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterResult:
    """The outcome for one letter, and the reason."""

    stored: StoredLetter
    outcome: LetterOutcome
    reason: str = ""


class ReplayTarget(AsyncResource):
    """Where events of dead letters go."""

    @abstractmethod
    async def take(self, letter: DeadLetter) -> None:
        """Deliver the event of a letter; return when it is stored or handled.

        Raises:
            LetterRefusedError: the target does not accept it, and another attempt now would not
                help.
            EventProcError: any other ends the replay; the letter stays.
        """


async def replay(
    reader: DeadLetterReader, target: ReplayTarget, letters: Iterable[StoredLetter]
) -> AsyncIterator[LetterResult]:
    """Replay letters in order, and yield the result for each.

    After an interruption, start another replay with the letters that are left.

    Args:
        reader: The reader of the sink; it must be open.
        target: Takes the events; it must be open.
        letters: Letters of this reader, in its order; see ``matching``.

    Raises:
        DeadLetterError: the sink does not answer, or another replay of it is under way.
        SourceUnavailableError: the hub does not answer.
    """
    refused: set[tuple[object, ...]] = set()
    for stored in letters:
        letter = stored.letter
        if letter is None:
            yield LetterResult(stored=stored, outcome=LetterOutcome.DAMAGED, reason=stored.damage)
            continue
        key = letter.event.partition_key
        lane = (letter.group.key, letter.partition_id, key)
        if key is not None and lane in refused:
            reason = "an earlier event of its key was refused"
            yield LetterResult(stored=stored, outcome=LetterOutcome.HELD_BACK, reason=reason)
            continue
        try:
            _check_decoded(letter)
            await target.take(letter)
        except LetterRefusedError as error:
            refused.add(lane)
            yield LetterResult(stored=stored, outcome=LetterOutcome.REFUSED, reason=str(error))
            continue
        await _remove(reader, stored)
        yield LetterResult(stored=stored, outcome=LetterOutcome.REPLAYED)


def _check_decoded(letter: DeadLetter) -> None:
    reason = letter.event.system_properties.get(UNDECODED)
    if reason is not None:
        raise LetterRefusedError(
            f"its event could not be decoded ({reason}), so its body is the whole message: "
            "decode it by hand, or drop the letter"
        )


async def drop(
    reader: DeadLetterReader, letters: Iterable[StoredLetter]
) -> AsyncIterator[StoredLetter]:
    """Remove letters of this reader without a replay, and yield each.

    Raises:
        DeadLetterError: the sink does not answer, or another process removes letters, too.
    """
    for stored in letters:
        await _remove(reader, stored)
        yield stored


async def _remove(reader: DeadLetterReader, stored: StoredLetter) -> None:
    if not await reader.remove(stored):
        raise DeadLetterError(
            f"letter {stored.place} was removed or stored again by another process meanwhile: is "
            "another replay of these letters under way? Let only one run, and start it again"
        )
