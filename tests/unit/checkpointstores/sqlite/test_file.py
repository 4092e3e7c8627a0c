"""The database file: how it is opened, and how files of earlier versions are migrated."""

import sqlite3
from datetime import UTC, datetime
from typing import Any

from checkpointstores.sqlite import SqliteCheckpointStore
from checkpointstores.sqlite.file import connect
from eventproc.models import (
    Checkpoint,
    CheckpointUpdate,
    ConsumerGroup,
    Member,
    OwnershipClaim,
    SequenceRange,
    WriteOutcome,
)

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
CLAIM = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=None)


def test_a_won_write_is_on_the_disk(tmp_path):
    """Not only in the system's cache: with less than FULL, a power cut may undo the last ones."""
    connection = connect(tmp_path / "group.db", busy_timeout_s=5)
    (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
    connection.close()

    assert synchronous == 2


VERSION_1 = """
CREATE TABLE ownership (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    partition_id TEXT NOT NULL, owner_id TEXT, etag TEXT NOT NULL,
    last_modified_us INTEGER NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, partition_id)
) WITHOUT ROWID, STRICT;
CREATE TABLE member (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    owner_id TEXT NOT NULL, incarnation TEXT NOT NULL, is_leaving INTEGER NOT NULL,
    hands_over INTEGER NOT NULL, weight REAL NOT NULL, version TEXT NOT NULL, etag TEXT NOT NULL,
    last_modified_us INTEGER NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, owner_id)
) WITHOUT ROWID, STRICT;
CREATE TABLE checkpoint (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    partition_id TEXT NOT NULL, "offset" TEXT NOT NULL, sequence_number INTEGER NOT NULL,
    writer TEXT NOT NULL, etag TEXT NOT NULL, last_modified_us INTEGER NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, partition_id)
) WITHOUT ROWID, STRICT;
CREATE TABLE checkpoint_state (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    partition_id TEXT NOT NULL, sequence_number INTEGER NOT NULL, state BLOB NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, partition_id)
) STRICT;
INSERT INTO member
VALUES ('ns', 'hub', '$default', 'a', '0', 0, 1, 1.0, '0.1', 'e0', 1000000);
INSERT INTO ownership VALUES ('ns', 'hub', '$default', '0', 'a', 'e1', 1000000);
INSERT INTO checkpoint VALUES ('ns', 'hub', '$default', '0', '700', 7, 'w', 'e2', 1000000);
INSERT INTO checkpoint_state VALUES ('ns', 'hub', '$default', '0', 7, x'736576656e');
PRAGMA application_id = 1702260850;
PRAGMA user_version = 1;
"""
"""A file as the first version of the tables left it."""

MOVED_BY_VERSION_1 = """
INSERT OR REPLACE INTO checkpoint
VALUES ('ns', 'hub', '$default', '0', '1000', 10, 'w1', 'e9', 2000000)
"""


def update_to(number: int, replaces: Checkpoint | None, **changes: Any) -> CheckpointUpdate:
    """An update of partition 0."""
    values: dict[str, Any] = {
        "partition_id": "0",
        "offset": str(number * 100),
        "sequence_number": number,
        "replaces": replaces,
        "writer": "w",
    }
    return CheckpointUpdate(**(values | changes))


async def test_a_file_of_the_first_version_is_migrated(tmp_path):
    """Its records are kept, and fields of the present version can be written."""
    path = tmp_path / "store.db"
    connection = sqlite3.connect(path)
    connection.executescript(VERSION_1)
    connection.close()
    done = (SequenceRange(9, 9),)
    async with SqliteCheckpointStore(path) as store:
        owned = await store.list_ownership(GROUP)
        member = await store.announce_member(GROUP, Member(owner_id="a", incarnation="1"))
        found = await store.read_checkpoint(GROUP, "0")
        update = update_to(8, found, completed=done, delivery_count=2)
        await store.update_checkpoint(GROUP, update)
    async with SqliteCheckpointStore(path) as store:
        reread = await store.read_checkpoint(GROUP, "0")

    assert found is not None
    assert reread is not None
    assert member.outcome is WriteOutcome.WON
    assert [(o.owner_id, o.etag) for o in owned.ownerships] == [("a", "e1")]
    assert (found.sequence_number, found.state, found.completed) == (7, b"seven", ())
    assert (reread.completed, reread.delivery_count, reread.state) == (done, 2, b"seven")


async def test_the_clock_of_a_migrated_file_is_not_behind_its_records(
    tmp_path,
):
    """They have times of wall clocks, which may have been ahead."""
    path = tmp_path / "store.db"
    connection = sqlite3.connect(path)
    connection.executescript(VERSION_1)
    connection.execute("UPDATE checkpoint SET last_modified_us = 4102444800000000")
    connection.commit()
    connection.close()
    async with SqliteCheckpointStore(path) as store:
        owned = await store.list_ownership(GROUP)

    assert owned.as_of is not None
    assert owned.as_of >= datetime(2100, 1, 1, tzinfo=UTC)


async def test_a_process_of_the_first_version_may_still_write(tmp_path):
    """It may have the file open. Completed ranges are cut at its position."""
    path = tmp_path / "store.db"
    async with SqliteCheckpointStore(path) as store:
        done = (SequenceRange(9, 10), SequenceRange(12, 12))
        await store.update_checkpoint(GROUP, update_to(8, None, completed=done, delivery_count=2))
        with sqlite3.connect(path) as connection:
            connection.execute(MOVED_BY_VERSION_1)
        connection.close()
        found = await store.read_checkpoint(GROUP, "0")

    assert found is not None
    assert found.sequence_number == 10
    assert (found.completed, found.delivery_count) == ((SequenceRange(12, 12),), 0)
