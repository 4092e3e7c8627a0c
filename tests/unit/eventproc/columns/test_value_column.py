"""Decoded values as an Arrow column: the type follows from the Python type alone."""

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

import msgspec
import pyarrow as pa
import pytest

from eventproc.columns import from_json
from eventproc.columns._value_column import value_array, value_type
from eventproc.decoders import CloudEventDecoder, JsonDecoder
from eventproc.errors import ConfigurationError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Colour(Enum):
    """Text."""

    RED = "red"


class Level(IntEnum):
    """Numbers."""

    LOW = 1


@dataclass
class Place:
    """A dataclass in a struct."""

    city: str


class Extra(TypedDict):
    """A dictionary with known keys."""

    note: str


class Order(msgspec.Struct, rename="camel"):
    """One field of each kind."""

    line_count: Annotated[int, msgspec.Meta(ge=0)]
    price: float
    paid: bool
    at: datetime
    day: date
    raw: bytes
    number: UUID
    amount: Decimal
    colour: Colour
    level: Level
    kind: Literal["a", "b"]
    tags: list[str]
    counts: dict[str, int]
    place: Place
    extra: Extra
    left: str | None = None


ORDER = Order(
    *(3, 1.5, True, NOON, NOON.date(), b"\xff", UUID(int=1), Decimal("1.10"), Colour.RED),
    *(Level.LOW, "a", ["x"], {"k": 1}, Place("Ulm"), Extra(note="n")),
)


def test_each_field_has_the_type_that_follows_from_its_annotation():
    """With the names of the encoded form; a union with ``None`` may be null."""
    kind = value_type(Order)
    (row,) = value_array([ORDER], kind).to_pylist()

    assert {field.name: field.type for field in kind} == {
        "lineCount": pa.int64(),
        "price": pa.float64(),
        "paid": pa.bool_(),
        "at": pa.timestamp("us", tz="UTC"),
        "day": pa.date32(),
        "raw": pa.binary(),
        "number": pa.string(),
        "amount": pa.string(),
        "colour": pa.string(),
        "level": pa.int64(),
        "kind": pa.string(),
        "tags": pa.list_(pa.string()),
        "counts": pa.map_(pa.string(), pa.int64()),
        "place": pa.struct([("city", pa.string())]),
        "extra": pa.struct([("note", pa.string())]),
        "left": pa.string(),
    }
    assert (row["lineCount"], row["at"], row["raw"], row["left"]) == (3, NOON, b"\xff", None)
    assert (row["counts"], row["place"], row["colour"]) == ([("k", 1)], {"city": "Ulm"}, "red")
    assert len(value_array([], kind)) == 0


def test_cloud_events_are_structs_with_their_data():
    """Attributes of extensions are text."""
    kind = value_type(CloudEventDecoder(JsonDecoder(Place)).shape)

    assert kind.field("data").type == pa.struct([("city", pa.string())])
    assert kind.field("extensions").type == pa.map_(pa.string(), pa.string())


class Tree(msgspec.Struct):
    """Contains itself."""

    below: "list[Tree]"


class Listed(msgspec.Struct, array_like=True):
    """Encoded without names."""

    a: int


@pytest.mark.parametrize(
    ("shape", "name"),
    [(Any, "Any"), (int | str, "Union"), (Tree, "Tree"), (Listed, "Listed"), (list[Any], "Any")],
)
def test_a_type_without_a_counterpart_is_refused(shape, name):
    """The message names the part of the type."""
    with pytest.raises(ConfigurationError, match=f"cannot have {name}"):
        value_type(shape)


def test_a_value_that_arrow_does_not_have_is_an_error():
    """Integers of Python have any size."""
    with pytest.raises(ValueError, match="'value' cannot have it"):
        value_array([2**70], value_type(int))


class Sparse(msgspec.Struct, omit_defaults=True):
    """Leaves out what has its default, when it is encoded."""

    count: int = 1


@pytest.mark.parametrize("shape", [Sparse, list[Sparse]])
def test_a_struct_that_leaves_out_defaults_is_refused(shape):
    """They would be null in the column."""
    with pytest.raises(ConfigurationError, match="cannot have Sparse with omit_defaults=True"):
        value_type(shape)


@pytest.mark.parametrize("text", ['{"base64": 5}', '{"base64": null}', '{"base64": "!!"}'])
def test_json_that_only_looks_like_bytes_is_what_it_is(text):
    """It comes from an expression in a query."""
    assert from_json(text) == json.loads(text)
