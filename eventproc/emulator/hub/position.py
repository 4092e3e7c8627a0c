"""Start positions of receivers: parses the selectors of Event Hubs. Pure."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from eventproc.emulator.amqp.refusal import ARGUMENT_ERROR, RefusedError


class PositionKind(StrEnum):
    """What a start position refers to."""

    OFFSET = "x-opt-offset"
    SEQUENCE_NUMBER = "x-opt-sequence-number"
    ENQUEUED_TIME = "x-opt-enqueued-time"
    LATEST = "@latest"


@dataclass(frozen=True, slots=True)
class StartPosition:
    """Where a receiver begins: after ``value``, or at it if ``inclusive``.

    A time is in milliseconds since 1970. ``LATEST`` means events from now on; its value is unused.
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
    """Parse the selector expression in the filter of a receiver's source.

    Raises:
        RefusedError: Event Hubs does not support the expression.
    """
    match = _SELECTOR.fullmatch(selector)
    if match is None:
        raise RefusedError(ARGUMENT_ERROR, f"The selector '{selector[:200]}' is not valid.")
    name, operator, value = match.groups()
    if value == PositionKind.LATEST:
        return LATEST
    return StartPosition(PositionKind(name), int(value), inclusive=operator == ">=")
