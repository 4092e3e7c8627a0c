"""Where does a receiver begin? The selectors of Event Hubs, read and answered. Pure."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from eventproc.emulator.refusal import ARGUMENT_ERROR, RefusedError


class PositionKind(StrEnum):
    """What a position counts in."""

    OFFSET = "x-opt-offset"
    SEQUENCE_NUMBER = "x-opt-sequence-number"
    ENQUEUED_TIME = "x-opt-enqueued-time"
    LATEST = "@latest"


@dataclass(frozen=True, slots=True)
class StartPosition:
    """The first event wanted: behind ``value``, or at it if ``inclusive``.

    A time is in milliseconds since 1970. ``LATEST`` has no value: whatever comes from now on.
    """

    kind: PositionKind
    value: int
    inclusive: bool = False


EARLIEST: Final = StartPosition(PositionKind.OFFSET, -1)
LATEST: Final = StartPosition(PositionKind.LATEST, 0)

_SELECTOR: Final = re.compile(
    r"\s*amqp\.annotation\.(x-opt-offset|x-opt-sequence-number|x-opt-enqueued-time)"
    r"\s*(>=?)\s*'?(@latest|-?\d{1,19})'?\s*"
)


def parse_selector(selector: str) -> StartPosition:
    """Read the expression that a receiver filters its source with.

    Raises:
        RefusedError: It is none of those that Event Hubs knows.
    """
    match = _SELECTOR.fullmatch(selector)
    if match is None:
        raise RefusedError(ARGUMENT_ERROR, f"The selector '{selector[:200]}' is not valid.")
    name, operator, value = match.groups()
    if value == PositionKind.LATEST:
        return LATEST
    return StartPosition(PositionKind(name), int(value), inclusive=operator == ">=")
