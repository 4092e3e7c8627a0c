"""Values of the column ``properties``, converted to properties of events. Pure."""

import base64
import binascii
import json
from enum import Enum

from eventproc.models import PropertyValue

Value = PropertyValue | list[PropertyValue]


class PropertyValues(Enum):
    """How values of the column are read."""

    JSON = "json"
    """JSON, as in the column of the source: each value gets its type back."""

    TEXT = "text"
    """Text, which is published as it is."""


def from_json(text: str) -> Value:
    """Return the value in JSON that the source has written.

    Raises:
        ValueError: it is not JSON, or not a value that a property can have.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # Not ``read_json``: a property may be ``NaN``.
        raise ValueError(
            f"{text!r}, which is not JSON, as the source's values are: set propertyValues=text to "
            "publish every value as the text that it is"
        ) from None
    if isinstance(value, list):
        return [_plain(one, text) for one in value]
    return _plain(value, text)


def _plain(value: object, text: str) -> PropertyValue:
    if isinstance(value, dict) and value.keys() == {"base64"}:
        try:
            return base64.b64decode(value["base64"], validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise ValueError(f"{text!r}, which is not valid Base64: {error}") from None
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise ValueError(
        f"{text!r}, and a property is text, a number, a boolean, null, or "
        '{"base64": "..."} for bytes'
    )
