"""The statements of the PostgreSQL store, with named parameters.

Each write changes the row only if it has the ETag that was read, and then returns a row.
"""

from typing import Final

from checkpointstores._fields import MEMBER, POSITION, PROGRESS, STATE, VERSION, Field
from checkpointstores._rows import MEMBER_ROW, OWNERSHIP_ROW, RECORD_ROW
from checkpointstores.postgres._schema import CHECKPOINT_ROW, DIALECT

OF_GROUP: Final = DIALECT.where()
_ETAG: Final = (Field("etag", str),)

WITH_TIME: Final = """
SELECT statement_timestamp(), l.* FROM (SELECT 1) one LEFT JOIN ({listing}) l ON true
"""

LIST_OWNERSHIP: Final = f"""
SELECT {DIALECT.columns(OWNERSHIP_ROW)}
FROM eventproc.ownership WHERE {OF_GROUP}
"""
READ_OWNERSHIP: Final = f"{LIST_OWNERSHIP} AND partition_id = ANY(%(partition_ids)s)"
CLAIMS: Final = """
WITH claim AS (
    SELECT * FROM unnest(
        %(partition_ids)s::text[], %(owner_ids)s::text[], %(epochs)s::bigint[],
        %(expected)s::text[], %(etags)s::text[]
    ) AS c (partition_id, owner_id, epoch, expected, etag)
)
"""
# All processors lock rows in the order of their ids, so that they cannot deadlock.
CLAIM_AGAIN: Final = f"""{CLAIMS}, locked AS (
    SELECT o.partition_id FROM eventproc.ownership o JOIN claim c USING (partition_id)
    WHERE {OF_GROUP} AND o.etag = c.expected
    ORDER BY o.partition_id FOR NO KEY UPDATE OF o
)
UPDATE eventproc.ownership o
SET owner_id = c.owner_id, epoch = c.epoch, etag = c.etag, last_modified = clock_timestamp()
FROM locked JOIN claim c USING (partition_id)
WHERE {OF_GROUP} AND o.partition_id = c.partition_id AND o.etag = c.expected
RETURNING {DIALECT.columns(OWNERSHIP_ROW, "o")}
"""
CLAIM_FIRST: Final = f"""{CLAIMS}
INSERT INTO eventproc.ownership
SELECT {DIALECT.parameters(())}, partition_id, owner_id, epoch, etag, clock_timestamp()
FROM claim WHERE expected IS NULL ORDER BY partition_id
ON CONFLICT DO NOTHING
RETURNING {DIALECT.columns(OWNERSHIP_ROW)}
"""

LIST_MEMBERS: Final = f"""
SELECT {DIALECT.columns(MEMBER_ROW)}
FROM eventproc.member WHERE {OF_GROUP}
"""
# One statement instead of two, because every poll of the group runs it.
LIST_MEMBERS_AND_RECORDS: Final = f"""
SELECT statement_timestamp(), r.names, r.etags, l.*
FROM (
    SELECT array_agg(name) AS names, array_agg(etag) AS etags
    FROM eventproc.group_record WHERE {OF_GROUP}
) r LEFT JOIN ({LIST_MEMBERS}) l ON true
"""
READ_MEMBER: Final = f"{LIST_MEMBERS} AND owner_id = %(owner_id)s"
INSERT_MEMBER: Final = f"""
INSERT INTO eventproc.member VALUES ({DIALECT.parameters(MEMBER + _ETAG)}, clock_timestamp())
ON CONFLICT DO NOTHING RETURNING last_modified
"""
UPDATE_MEMBER: Final = f"""
UPDATE eventproc.member SET
    {", ".join(f"{field.name} = %({field.name})s" for field in MEMBER + _ETAG)},
    last_modified = clock_timestamp()
WHERE {OF_GROUP} AND owner_id = %(owner_id)s AND etag = %(expected)s
RETURNING last_modified
"""
DELETE_MEMBER: Final = f"""
DELETE FROM eventproc.member
WHERE {OF_GROUP} AND owner_id = %(owner_id)s AND etag = %(expected)s
RETURNING etag
"""

LIST_CHECKPOINTS: Final = f"""
SELECT {DIALECT.columns(POSITION + VERSION)}
FROM eventproc.checkpoint WHERE {OF_GROUP}
"""
READ_CHECKPOINT: Final = f"""
SELECT {DIALECT.columns(CHECKPOINT_ROW)}
FROM eventproc.checkpoint WHERE {DIALECT.where("partition_id")}
"""
# Returns a row if the checkpoint was written. The time is in microseconds, because its text depends
# on the role's DateStyle.
WRITE_CHECKPOINT: Final = f"""
SELECT (extract(epoch FROM written_at) * 1000000)::bigint, kept, kept_number
FROM eventproc.write_checkpoint(
    ROW({DIALECT.parameters(POSITION + STATE + PROGRESS + _ETAG)}, NULL)::eventproc.checkpoint,
    %(expected)s, keeps_state => %(keeps_state)s, returns_state => %(returns_state)s,
    fails => %(fails)s
) WHERE written_at IS NOT NULL
"""

READ_RECORD: Final = f"""
SELECT {DIALECT.columns(RECORD_ROW)}
FROM eventproc.group_record WHERE {DIALECT.where("name")}
"""
INSERT_RECORD: Final = f"""
INSERT INTO eventproc.group_record VALUES ({DIALECT.parameters(RECORD_ROW)})
ON CONFLICT DO NOTHING RETURNING etag
"""
UPDATE_RECORD: Final = f"""
UPDATE eventproc.group_record SET content = %(content)s, etag = %(etag)s
WHERE {OF_GROUP} AND name = %(name)s AND etag = %(expected)s
RETURNING etag
"""
