"""The tables of the PostgreSQL store, and the triggers that send notifications of changes.

The statements use the schema ``eventproc``; ``in_schema`` replaces its name with another one.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Final

from checkpointstores import _fields as fields
from checkpointstores._fields import POSITION, PROGRESS, STATE
from checkpointstores._rows import MEMBER_ROW, OWNERSHIP_ROW, RECORD_ROW, ColumnType, Dialect
from eventproc.errors import ConfigurationError
from eventproc.models import SequenceRange

SCHEMA: Final = "eventproc"
"""The name of the schema, unless another one is given."""

_NAME_BYTES_MAX: Final = 63

VERSION: Final = 1
"""What the table ``version`` has in a schema with these tables."""


def utc(instant: datetime) -> datetime:
    """Return a time of the server, which has the time zone of the role."""
    return instant.astimezone(UTC)


def _numbers_of(ranges: Iterable[SequenceRange]) -> list[int]:
    return [number for done in ranges for number in (done.first, done.last)]


def _ranges_in(numbers: Sequence[int]) -> tuple[SequenceRange, ...]:
    return tuple(map(SequenceRange, numbers[::2], numbers[1::2]))


DIALECT: Final = Dialect(
    types={
        str: ColumnType("text"),
        int: ColumnType("bigint"),
        float: ColumnType("double precision"),
        bool: ColumnType("boolean"),
        bytes: ColumnType("bytea"),
        datetime: ColumnType("timestamptz", read=utc),
        tuple: ColumnType("bigint[]", write=_numbers_of, read=_ranges_in),
    },
    parameter="%({})s",
    time_column="last_modified",
)

CHECKPOINT_ROW: Final = POSITION + STATE + PROGRESS + fields.VERSION

_SPARSE: Final = "WITH (fillfactor = 50)"
"""An updated row finds room on its page, so that no index entry is written."""

_CREATE: Final = """
CREATE SCHEMA IF NOT EXISTS eventproc;
CREATE TABLE eventproc.version (version integer NOT NULL);
{ownership}
{member}
{checkpoint}
{group_record}

CREATE FUNCTION eventproc.tell(
    namespace text, eventhub text, consumer_group text, owner_id text
) RETURNS void LANGUAGE sql AS $$
    SELECT pg_notify(
        'eventproc', md5(concat_ws(chr(31), namespace, eventhub, consumer_group)) || ' ' || owner_id
    )
$$;
CREATE FUNCTION eventproc.owner_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM eventproc.tell(
        NEW.namespace, NEW.eventhub, NEW.consumer_group, coalesce(NEW.owner_id, '')
    );
    IF OLD.owner_id IS NOT NULL THEN
        PERFORM eventproc.tell(NEW.namespace, NEW.eventhub, NEW.consumer_group, OLD.owner_id);
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION eventproc.group_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed record := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    PERFORM eventproc.tell(changed.namespace, changed.eventhub, changed.consumer_group, '');
    RETURN NULL;
END $$;
CREATE TRIGGER owner_changed AFTER UPDATE ON eventproc.ownership FOR EACH ROW
    WHEN (OLD.owner_id IS DISTINCT FROM NEW.owner_id) EXECUTE FUNCTION eventproc.owner_changed();
CREATE TRIGGER member_changed AFTER UPDATE ON eventproc.member FOR EACH ROW
    WHEN ((OLD.incarnation, OLD.status) IS DISTINCT FROM (NEW.incarnation, NEW.status))
    EXECUTE FUNCTION eventproc.group_changed();
CREATE TRIGGER member_came_or_left AFTER INSERT OR DELETE ON eventproc.member FOR EACH ROW
    EXECUTE FUNCTION eventproc.group_changed();
CREATE TRIGGER group_record_changed AFTER INSERT OR UPDATE ON eventproc.group_record FOR EACH ROW
    EXECUTE FUNCTION eventproc.group_changed();

-- A function, because a session plans its statements once. An update that keeps a large state does
-- not write it again: PostgreSQL stores it outside of the row.
CREATE FUNCTION eventproc.write_checkpoint(
    given eventproc.checkpoint, expected text,
    keeps_state boolean, returns_state boolean, fails boolean,
    OUT written_at timestamptz, OUT kept bytea, OUT kept_number bigint
) LANGUAGE plpgsql AS $$
BEGIN
    IF expected IS NULL THEN
        given.last_modified := clock_timestamp();
        INSERT INTO eventproc.checkpoint SELECT given.* ON CONFLICT DO NOTHING
        RETURNING last_modified INTO written_at;
    ELSE
        UPDATE eventproc.checkpoint c SET
            "offset" = given."offset", sequence_number = given.sequence_number,
            writer = given.writer, completed = given.completed,
            isolation = given.isolation, etag = given.etag,
            state = CASE WHEN keeps_state THEN c.state ELSE given.state END,
            state_sequence_number = CASE
                WHEN keeps_state THEN c.state_sequence_number ELSE given.state_sequence_number
            END,
            last_modified = clock_timestamp()
        WHERE c.namespace = given.namespace AND c.eventhub = given.eventhub
            AND c.consumer_group = given.consumer_group AND c.partition_id = given.partition_id
            AND c.etag = expected
        RETURNING c.last_modified, CASE WHEN returns_state THEN c.state END,
            CASE WHEN returns_state THEN c.state_sequence_number END
        INTO written_at, kept, kept_number;
    END IF;
    IF fails AND written_at IS NULL THEN
        RAISE EXCEPTION 'the checkpoint has been written by another processor'
            USING ERRCODE = 'EPCKP';
    END IF;
END $$;
"""
CREATE: Final = _CREATE.format(
    ownership=DIALECT.create("eventproc.ownership", OWNERSHIP_ROW, _SPARSE),
    member=DIALECT.create("eventproc.member", MEMBER_ROW, _SPARSE),
    checkpoint=DIALECT.create("eventproc.checkpoint", CHECKPOINT_ROW, _SPARSE),
    group_record=DIALECT.create("eventproc.group_record", RECORD_ROW),
)

CHECKPOINT_LOST: Final = "EPCKP"
"""The SQLSTATE of a transaction that fails because another processor wrote the checkpoint."""

READ_VERSION: Final = "SELECT version FROM eventproc.version"
WRITE_VERSION: Final = "INSERT INTO eventproc.version VALUES (%s)"

EXISTS: Final = "SELECT to_regclass(%s) IS NOT NULL"

MISSING_RIGHTS: Final = """
SELECT t || ': ' || r
FROM unnest(ARRAY['ownership', 'member', 'checkpoint', 'group_record']) t,
    unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) r
WHERE NOT has_table_privilege('eventproc.' || t, r)
ORDER BY 1
"""


def check_name(schema: str) -> None:
    """Check that a text can be the name of a schema.

    Raises:
        ConfigurationError: it is empty, too long, or has characters other than small letters,
            digits and underscores.
    """
    is_short = 0 < len(schema.encode()) <= _NAME_BYTES_MAX
    if not (is_short and schema.isascii() and schema.isidentifier()) or schema != schema.lower():
        raise ConfigurationError(
            f"schema is {schema!r}: give a name of small letters, digits and underscores, at most "
            f"{_NAME_BYTES_MAX}"
        )


@cache
def in_schema(statement: str, schema: str) -> str:
    """Return the statement for the tables in *schema*."""
    if schema == SCHEMA:
        return statement
    return (
        statement.replace("eventproc.", f'"{schema}".')
        .replace("EXISTS eventproc;", f'EXISTS "{schema}";')
        .replace("'eventproc'", f"'{schema}'")
    )
