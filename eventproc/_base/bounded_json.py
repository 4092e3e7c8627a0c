"""Reads JSON that another process or a user wrote: in a store, a file or an option, on a socket.

Rule: for any bytes, the only exception is ``ValueError``, and the value can be walked through by
recursion. ``json.loads`` alone raises ``RecursionError`` for deeply nested lists.
"""

import json
from math import isfinite
from typing import Any, Final

DEPTH_MAX: Final = 100
"""Deepest nesting of lists and objects; nothing that eventproc writes has a tenth of that, except
for a dead letter with the nested properties of an event."""

LENGTH_MAX: Final = 16 * 1024 * 1024
"""Longest JSON that is read, in bytes or characters. The longest of a store are group records."""


def read_json(text: bytes | str, *, length_max: int = LENGTH_MAX) -> Any:  # noqa: ANN401 - JSON is anything
    """Return the value; numbers are finite.

    Args:
        text: The JSON.
        length_max: Most bytes, or characters, that it may have.

    Raises:
        ValueError: it is not JSON, too long, or nested too deeply.
    """
    if len(text) > length_max:
        raise ValueError(f"its length is {len(text):,}, and at most {length_max:,} is read")
    try:
        value = json.loads(text, parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        level = [inner for outer in level for inner in _items(outer)]
        if not level:
            return value
    raise ValueError(_TOO_DEEP)


_TOO_DEEP: Final = f"it is nested more than {DEPTH_MAX} deep"


def _items(value: object) -> Any:  # noqa: ANN401 - a view or a list
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number
