"""Records as rows of PostgreSQL and SQLite: one list of columns for both.

A table has the three columns of the group, then one for each field, named as the field. A
``Dialect`` says what differs between the databases: types, parameters, the column of times.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from checkpointstores._fields import MEMBER, OWNERSHIP, VERSION, Field, unchanged
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup

RecordT = TypeVar("RecordT")
Fields = tuple[Field, ...]

GROUP: Final = ("namespace", "eventhub", "consumer_group")

OWNERSHIP_ROW: Final = OWNERSHIP + VERSION
MEMBER_ROW: Final = MEMBER + VERSION
RECORD_ROW: Final = (Field("name", str), Field("content", bytes), Field("etag", str))


def key_of(group: ConsumerGroup) -> dict[str, Any]:
    """Return the values of a group's columns."""
    return dict(zip(GROUP, group.key, strict=True))


def groups_of(
    rows: Iterable[Sequence[Any]], hub_of: ConsumerGroup | None = None
) -> list[ConsumerGroup]:
    """Return the groups with these names: namespace, hub and group, as in the tables.

    Args:
        rows: The names of each group.
        hub_of: If given, only groups of the same hub as this one are returned.
    """
    groups = []
    for namespace, eventhub, name in rows:
        with suppress(ConfigurationError):  # Something else that another program has put there.
            groups.append(
                ConsumerGroup(
                    fully_qualified_namespace=namespace, eventhub_name=eventhub, name=name
                )
            )
    return [each for each in groups if hub_of is None or each.key[:2] == hub_of.key[:2]]


def list_groups_statement(schema: str = "") -> str:
    """Return the statement that reads which groups have ownership records or checkpoints."""
    names = ", ".join(GROUP)
    parts = [
        f"SELECT {names} FROM {schema}{table}"  # noqa: S608 - of constants
        for table in ("ownership", "checkpoint")
    ]
    return f"{' UNION '.join(parts)} ORDER BY {names}"


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of a column, and how a database keeps values of one type in it."""

    sql: str
    write: Callable[[Any], Any] = unchanged
    read: Callable[[Any], Any] = unchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one database keeps the fields of records."""

    types: Mapping[type, ColumnType]
    parameter: str
    """A named parameter in a statement, with ``{}`` for the name."""

    time_column: str
    """The name of the column of ``last_modified``."""

    def create(self, table: str, fields: Fields, options: str = "") -> str:
        """Return the statement that creates a table whose key is the group and the first field."""
        text = self.types[str].sql
        lines = [
            ", ".join(f"{name} {text} NOT NULL" for name in GROUP),
            *(
                f"{self.column(field)} {self.types[field.type].sql}"
                f"{'' if field.default is None else ' NOT NULL'}"
                for field in fields
            ),
            f"PRIMARY KEY ({', '.join(GROUP)}, {self.column(fields[0])})",
        ]
        return f"CREATE TABLE {table} (\n    " + ",\n    ".join(lines) + f"\n) {options};"

    def column(self, field: Field) -> str:
        """Return the name of a field's column, as statements have it."""
        if field.type is datetime:
            return self.time_column
        return f'"{field.name}"' if field.name == "offset" else field.name

    def columns(self, fields: Fields, table: str = "") -> str:
        """Return the list of the columns, each with the name of the table if there is one."""
        prefix = f"{table}." if table else ""
        return ", ".join(prefix + self.column(field) for field in fields)

    def parameters(self, fields: Fields) -> str:
        """Return the list of the parameters of a row: those of the group, one for each field."""
        names = (*GROUP, *(field.name for field in fields))
        return ", ".join(map(self.parameter.format, names))

    def where(self, *names: str) -> str:
        """Return the condition that a row is of the group, and has these parameters."""
        return " AND ".join(f"{name} = {self.parameter.format(name)}" for name in (*GROUP, *names))

    def values(self, fields: Fields, record: object) -> dict[str, Any]:
        """Return the values of a record's fields, by the names of fields."""
        return {field.name: self.types[field.type].write(field.written(record)) for field in fields}

    def record(self, kind: type[RecordT], fields: Fields, row: Sequence[Any]) -> RecordT:
        """Return the record in a row that has the columns of these fields, in this order."""
        return kind(
            **{
                field.name: None
                if value is None
                else field.read(self.types[field.type].read(value))
                for field, value in zip(fields, row, strict=True)
            }
        )
