"""CloudEvents 1.0: attributes in the body (structured) or in the event's properties (binary)."""

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, TypeVar

import msgspec

from eventproc._base.settings import checked
from eventproc.decoders._decoders import Decoder
from eventproc.models import ReceivedEvent

T = TypeVar("T")

STRUCTURED: Final = "application/cloudevents+json"
"""Content type of a body that has attributes and data."""

BATCHED: Final = "application/cloudevents-batch"

PREFIXES: Final = ("cloudEvents:", "cloudEvents_", "ce_", "ce-")
"""Prefixes of attribute names in properties: AMQP uses the first two, Kafka the third."""

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ANYTHING: Final = msgspec.json.Decoder()
_OWN: Final = frozenset({"specversion", "id", "source", "type", "subject", "time"})
_OF_DATA: Final = frozenset({"datacontenttype", "dataschema", "data", "data_base64"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudEvent(Generic[T]):
    """The attributes of a CloudEvent, and its data."""

    id: str
    source: str
    type: str
    subject: str | None = None
    time: datetime | None = None
    data_content_type: str | None = None
    data_schema: str | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)
    """All other attributes, as text."""

    data: T


class CloudEventDecoder(Decoder[CloudEvent[T]]):
    """Decodes CloudEvents in both modes, which it distinguishes by the content type.

    Args:
        data: Decodes the data, for example ``JsonDecoder(Order)``. It gets empty bytes if there is
            none.
    """

    @checked
    def __init__(self, data: Decoder[T]) -> None:
        self._data = data

    @property
    def shape(self) -> Any:  # noqa: ANN401 - a generic alias
        """``CloudEvent`` of the data's type."""
        shape: Any = self._data.shape
        return None if shape is None else CloudEvent[shape]

    def decode(self, body: bytes, event: ReceivedEvent) -> CloudEvent[T]:
        """Return the event; ``ValueError`` if an attribute is missing."""
        given = event.content_type or event.properties.get("content-type", "")
        kind = given.decode(errors="replace") if isinstance(given, bytes) else str(given)
        if kind.lower().startswith(BATCHED):
            raise ValueError("a batch of CloudEvents is no single event: publish them one by one")
        if kind.lower().startswith(STRUCTURED):
            attributes, data = _structured(body)
        else:
            attributes, data = _binary(event), body
            if kind:
                attributes.setdefault("datacontenttype", kind)
        return CloudEvent(
            id=_required(attributes, "id"),
            source=_required(attributes, "source"),
            type=_required(attributes, "type"),
            subject=_text(attributes, "subject"),
            time=_time(attributes),
            data_content_type=_text(attributes, "datacontenttype"),
            data_schema=_text(attributes, "dataschema"),
            extensions={
                name: _canonical(value)
                for name, value in attributes.items()
                if name not in _OWN | _OF_DATA
            },
            data=self._data.decode(data, event),
        )


def _structured(body: bytes) -> tuple[dict[str, object], bytes]:
    found = _OBJECT.decode(body)
    raw, encoded = found.pop("data", None), found.pop("data_base64", None)
    attributes = {name: _ANYTHING.decode(value) for name, value in found.items()}
    attributes = {name: value for name, value in attributes.items() if value is not None}
    if encoded is not None and bytes(encoded) != b"null":
        return attributes, b64decode(msgspec.json.decode(encoded, type=str), validate=True)
    if raw is None:
        return attributes, b""
    if _is_json(attributes):
        return attributes, bytes(raw)
    value = _ANYTHING.decode(raw)
    return attributes, value.encode() if isinstance(value, str) else bytes(raw)


def _is_json(attributes: Mapping[str, object]) -> bool:
    """Whether the data is a JSON value; by the specification it is, if its type is missing."""
    kind = str(attributes.get("datacontenttype", "application/json")).partition(";")[0].strip()
    return kind.lower().endswith(("/json", "+json"))


def _binary(event: ReceivedEvent) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in event.properties.items():
        prefix = next((each for each in PREFIXES if name.startswith(each)), None)
        if prefix is not None:
            found[name.removeprefix(prefix)] = value
    return found


def _text(attributes: Mapping[str, object], name: str) -> str | None:
    value = attributes.get(name)
    return None if value is None else str(value)


def _required(attributes: Mapping[str, object], name: str) -> str:
    value = _text(attributes, name)
    if not value:
        raise ValueError(f"it is no CloudEvent: attribute {name!r} is missing")
    return value


def _canonical(value: object) -> str:
    """Return an attribute's value in the text form of the specification."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _time(attributes: Mapping[str, object]) -> datetime | None:
    value = attributes.get("time")
    if value is None or isinstance(value, datetime):
        return value
    if isinstance(value, int):  # A timestamp of AMQP.
        return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=value)
    return msgspec.convert(str(value), datetime)
