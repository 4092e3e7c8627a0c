"""Values of properties as JSON, and back."""

import base64
import json
from datetime import datetime


def to_json(value: object) -> str:
    """Return a property's value as JSON; bytes become ``{"base64": "..."}``."""
    if type(value) is int:
        return str(value)
    return json.dumps(value, default=_plain, ensure_ascii=False)


def from_json(text: str | None) -> object:
    """Return the value of a property from its JSON.

    Text that is not JSON, for example from an expression in a query, is returned unchanged.
    """
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return base64.b64decode(value["base64"])
    return value


def _plain(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)
