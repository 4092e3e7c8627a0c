"""How the events after a checkpoint were delivered, by a pump that did not close normally."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

_DIGITS_MAX: Final = 18


class IsolationMode(IntEnum):
    """Beside how many others an event was delivered: the higher the mode, the fewer."""

    NONE = 0
    """The event was not delivered."""

    BATCH = 1
    PART = 2
    """In a small part of a batch."""

    ALONE = 3


@dataclass(frozen=True, slots=True, order=True)
class Isolation:
    """How events were delivered: with which other events, and how often alone."""

    mode: IsolationMode
    alone_count: int = 0
    """At least 1 if ``mode`` is ``ALONE``, otherwise 0."""

    def __post_init__(self) -> None:
        """Refuse a count that does not belong to the mode."""
        if (self.mode is IsolationMode.ALONE) != (self.alone_count > 0) or self.alone_count < 0:
            raise ValueError(f"alone_count {self.alone_count} does not fit {self.mode.name}")

    def __str__(self) -> str:
        """Return the stored word: ``none``, ``batch``, ``part``, ``alone``, ``alone 2``."""
        word = self.mode.name.lower()
        return f"{word} {self.alone_count}" if self.alone_count > 1 else word

    @classmethod
    def parse(cls, text: str) -> "Isolation":
        """Return what a stored word says. An unknown word counts as ``batch``.

        Then the events are delivered in small parts next, which is never wrong.
        """
        word, _, count = text.partition(" ")
        if word == "alone" and (not count or (count.isdecimal() and len(count) <= _DIGITS_MAX)):
            return alone(max(1, int(count or 1)))
        return {"none": NOT_BEGUN, "part": IN_PART}.get(text, IN_BATCH)


NOT_BEGUN: Final = Isolation(IsolationMode.NONE)
IN_BATCH: Final = Isolation(IsolationMode.BATCH)
IN_PART: Final = Isolation(IsolationMode.PART)


def alone(count: int) -> Isolation:
    """Return the isolation of events that were delivered alone *count* times."""
    return Isolation(IsolationMode.ALONE, count)


ALONE: Final = alone(1)
