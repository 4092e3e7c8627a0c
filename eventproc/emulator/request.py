"""The parameters of a request to the control endpoint, which are the JSON object in its body.

Rule: an invalid request raises ``MalformedRequestError`` with one sentence, before any of it is
carried out.
"""

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Final

from eventproc.bounded_json import read_json

DURATION_MAX: Final = timedelta(days=366)

NUMBER_MAX: Final = 2**63 - 1
"""Largest sequence number: 64 bits."""

_SHOWN_MAX: Final = 60


class MalformedRequestError(ValueError):
    """The request is invalid; nothing was done."""


class Parameters:
    """The parameters in the body; each value is checked when it is read."""

    def __init__(self, given: Mapping[str, object]) -> None:
        self._given = given

    @classmethod
    def parse(cls, body: bytes) -> "Parameters":
        """Parse a body; an empty one has no parameters.

        Raises:
            MalformedRequestError: It is not a JSON object.
        """
        try:
            given = read_json(body or b"{}")
        except ValueError as error:
            raise MalformedRequestError(f"the body is not JSON: {error}") from error
        if not isinstance(given, dict):
            raise MalformedRequestError("the body must be a JSON object")
        return cls(given)

    def refuse_others(self, known: Collection[str]) -> None:
        """Raise ``MalformedRequestError`` if there is a parameter with another name."""
        for name in self._given:
            if name not in known:
                names = ", ".join(sorted(known)) or "none"
                raise MalformedRequestError(
                    f"{_shown(name)} is not a parameter here; there are: {names}"
                )

    def text(self, name: str) -> str | None:
        """Return a string parameter, or ``None`` if it is missing."""
        value = self._given.get(name)
        if value is not None and not isinstance(value, str):
            raise MalformedRequestError(f"{name} is {_shown(value)}: give a string")
        return value

    def required_text(self, name: str) -> str:
        """Return a string parameter that must be there."""
        value = self.text(name)
        if value is None:
            raise MalformedRequestError(f"{name} is missing: give a string")
        return value

    def whole_number(self, name: str, *, least: int, most: int) -> int:
        """Return a whole number between two bounds, both included."""
        value = self._number(name)
        if value != value // 1 or not least <= value <= most:
            raise MalformedRequestError(
                f"{name} is {_shown(value)}: give a whole number from {least} to {most}"
            )
        return int(value)

    def duration(self, name: str) -> timedelta:
        """Return a duration, given in seconds."""
        value = self._number(name)
        most = DURATION_MAX.total_seconds()
        if not 0 <= value <= most:
            raise MalformedRequestError(
                f"{name} is {_shown(value)}: give seconds from 0 to {most:.0f}"
            )
        return timedelta(seconds=value)

    def _number(self, name: str) -> float:
        value = self._given.get(name)
        if value is None:
            raise MalformedRequestError(f"{name} is missing: give a number")
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise MalformedRequestError(f"{name} is {_shown(value)}: give a number")
        return value


def _shown(value: object) -> str:
    """Format a value for a message, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
