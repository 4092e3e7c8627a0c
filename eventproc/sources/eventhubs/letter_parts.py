"""The JSON of a dead letter in several events of a hub, because one would be too large."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from eventproc.errors import LetterDamagedError
from eventproc.models import DeadLetter, ReceivedEvent, letter_from_json

PROPERTY_PREFIX: Final = "eventproc_"
"""Prefix of the properties that describe the failure, so that none replaces one of the event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterPart:
    """One part; those of the same JSON have the same digest, also if it was sent twice."""

    letter_id: str
    json_sha256: str
    part_number: int
    """From 0 on."""

    part_count: int
    content: bytes

    @property
    def properties(self) -> Mapping[str, str | int]:
        """The properties of its event."""
        return {PROPERTY_PREFIX + name: getattr(self, name) for name in _DETAILS}


_DETAILS: Final = {"letter_id": str, "json_sha256": str, "part_number": int, "part_count": int}


def parts_of(letter: DeadLetter, bytes_max: int) -> Iterator[LetterPart]:
    """Divide a letter's JSON into parts of at most *bytes_max* bytes."""
    whole = letter.to_json()
    pieces = [whole[at : at + bytes_max] for at in range(0, len(whole), bytes_max)]
    for number, piece in enumerate(pieces):
        yield LetterPart(
            letter_id=letter.letter_id,
            json_sha256=sha256(whole).hexdigest(),
            part_number=number,
            part_count=len(pieces),
            content=piece,
        )


def part_of(event: ReceivedEvent) -> LetterPart | None:
    """Return the part in an event; ``None`` if the event is a whole letter, or no letter."""
    details = {name: event.properties.get(PROPERTY_PREFIX + name) for name in _DETAILS}
    if not all(isinstance(details[name], kind) for name, kind in _DETAILS.items()):
        return None
    return LetterPart(**details, content=event.body)  # type: ignore[arg-type]  # just checked


def letter_from_parts(parts: Collection[LetterPart]) -> DeadLetter:
    """Return the letter of parts with one digest, which may be in any order.

    Raises:
        LetterDamagedError: parts are missing, or they are not those of a letter.
    """
    contents = {part.part_number: part.content for part in parts}
    whole = b"".join(contents[number] for number in sorted(contents))
    first = next(iter(parts))
    if sha256(whole).hexdigest() != first.json_sha256:
        raise LetterDamagedError(
            f"only {len(contents)} of the {first.part_count} parts of letter {first.letter_id} are "
            "left"
        )
    return letter_from_json(whole)
