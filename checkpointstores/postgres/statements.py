"""The statements of the PostgreSQL store, with named parameters.

Each write changes the row only if it has the ETag that was read, and then returns a row.
"""

from typing import Final

OF_GROUP: Final = (
    "namespace = %(namespace)s AND eventhub = %(eventhub)s AND consumer_group = %(group)s"
)

WITH_TIME: Final = """
SELECT statement_timestamp(), l.* FROM (SELECT 1) one LEFT JOIN ({listing}) l ON true
"""

LIST_OWNERSHIP: Final = f"""
SELECT partition_id, owner_id, etag, last_modified, epoch
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
RETURNING o.partition_id, o.owner_id, o.etag, o.last_modified, o.epoch
"""
CLAIM_FIRST: Final = f"""{CLAIMS}
INSERT INTO eventproc.ownership
SELECT %(namespace)s, %(eventhub)s, %(group)s, partition_id, owner_id, epoch, etag,
    clock_timestamp()
FROM claim WHERE expected IS NULL ORDER BY partition_id
ON CONFLICT DO NOTHING
RETURNING partition_id, owner_id, etag, last_modified, epoch
"""

MEMBER_COLUMNS: Final = (
    "owner_id",
    "incarnation",
    "status",
    "hands_over",
    "weight",
    "capacity",
    "ordinal",
    "placement",
    "load",
    "deployment_id",
    "offset_format",
    "version",
    "etag",
    "last_modified",
)
LIST_MEMBERS: Final = f"""
SELECT {", ".join(MEMBER_COLUMNS)}
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
INSERT_MEMBER: Final = """
INSERT INTO eventproc.member VALUES (
    %(namespace)s, %(eventhub)s, %(group)s, %(owner_id)s, %(incarnation)s, %(status)s,
    %(hands_over)s, %(weight)s, %(capacity)s, %(ordinal)s, %(placement)s, %(load)s,
    %(deployment_id)s, %(offset_format)s, %(version)s, %(etag)s, clock_timestamp()
) ON CONFLICT DO NOTHING RETURNING last_modified
"""
UPDATE_MEMBER: Final = f"""
UPDATE eventproc.member SET
    incarnation = %(incarnation)s, status = %(status)s, hands_over = %(hands_over)s,
    weight = %(weight)s, capacity = %(capacity)s, ordinal = %(ordinal)s,
    placement = %(placement)s, load = %(load)s, deployment_id = %(deployment_id)s,
    offset_format = %(offset_format)s, version = %(version)s, etag = %(etag)s,
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
SELECT partition_id, "offset", sequence_number, writer, etag, last_modified
FROM eventproc.checkpoint WHERE {OF_GROUP}
"""
READ_CHECKPOINT: Final = f"""
SELECT partition_id, "offset", sequence_number, writer, etag, last_modified,
    state, state_sequence_number, completed, isolation
FROM eventproc.checkpoint WHERE {OF_GROUP} AND partition_id = %(partition_id)s
"""
# Returns a row if the checkpoint was written. The time is in microseconds, because its text depends
# on the role's DateStyle.
WRITE_CHECKPOINT: Final = """
SELECT (extract(epoch FROM written_at) * 1000000)::bigint, kept, kept_number
FROM eventproc.write_checkpoint(
    ROW(
        %(namespace)s, %(eventhub)s, %(group)s, %(partition_id)s, %(offset)s, %(number)s,
        %(writer)s, %(state)s, %(state_number)s, %(completed)s, %(isolation)s, %(etag)s, NULL
    )::eventproc.checkpoint,
    %(expected)s, keeps_state => %(keeps_state)s, returns_state => %(returns_state)s,
    fails => %(fails)s
) WHERE written_at IS NOT NULL
"""

READ_RECORD: Final = f"""
SELECT content, etag FROM eventproc.group_record WHERE {OF_GROUP} AND name = %(name)s
"""
INSERT_RECORD: Final = """
INSERT INTO eventproc.group_record VALUES (
    %(namespace)s, %(eventhub)s, %(group)s, %(name)s, %(content)s, %(etag)s
) ON CONFLICT DO NOTHING RETURNING etag
"""
UPDATE_RECORD: Final = f"""
UPDATE eventproc.group_record SET content = %(content)s, etag = %(etag)s
WHERE {OF_GROUP} AND name = %(name)s AND etag = %(expected)s
RETURNING etag
"""
