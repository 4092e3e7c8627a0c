"""The PostgreSQL store is opened: its tables are created, and what cannot work is refused."""

import asyncio
import uuid

import psycopg
import pytest

from checkpointstores.postgres import PostgresCheckpointStore
from checkpointstores.postgres._schema import VERSION, check_name
from eventproc.errors import ConfigurationError, StoreUnavailableError
from eventproc.models import ConsumerGroup, OwnershipClaim, WriteOutcome

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")


@pytest.fixture(name="schema")
def _schema():
    """Return the name of a schema that does not exist."""
    return f"s{uuid.uuid4().hex}"


def execute(server, statement):
    """Run a statement as the owner of the database."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(statement)


async def test_tables_that_do_not_exist_are_not_created(postgres, schema):
    """A mistyped name would start an empty group; the message has the command that creates."""
    store = PostgresCheckpointStore(postgres.dsn, schema=schema)
    with pytest.raises(ConfigurationError, match="eventproc store init"):
        await store.open()


async def test_a_store_that_is_refused_is_not_open(postgres, schema):
    """It is refused again, until the tables exist."""
    store = PostgresCheckpointStore(postgres.dsn, schema=schema)
    for _ in range(2):
        with pytest.raises(ConfigurationError):
            await store.open()
    async with PostgresCheckpointStore(postgres.dsn, schema=schema, create_schema=True):
        pass
    async with store:
        snapshot = await store.list_members(GROUP)

    assert snapshot.members == ()


async def test_processes_that_create_the_tables_at_once_all_succeed(postgres, schema):
    """One of them creates the tables, and the others find them."""
    stores = [
        PostgresCheckpointStore(postgres.dsn, schema=schema, create_schema=True) for _ in range(5)
    ]
    await asyncio.gather(*(store.open() for store in stores))
    snapshots = await asyncio.gather(*(store.list_members(GROUP) for store in stores))
    await asyncio.gather(*(store.close() for store in stores))

    assert [snapshot.members for snapshot in snapshots] == [()] * 5


async def test_schemas_do_not_share_records(postgres, schema):
    """Two groups of the same name may live in one database."""
    claim = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=None)
    for name in (schema, f"{schema}b"):
        async with PostgresCheckpointStore(postgres.dsn, schema=name, create_schema=True) as store:
            [result] = await store.claim_ownership(GROUP, [claim])

        assert result.outcome is WriteOutcome.WON


async def test_tables_of_another_version_are_refused(postgres, schema):
    """This one would not write what the other one needs."""
    async with PostgresCheckpointStore(postgres.dsn, schema=schema, create_schema=True):
        pass
    await asyncio.to_thread(
        execute, postgres, f"UPDATE {schema}.version SET version = {VERSION + 1}"
    )
    with pytest.raises(ConfigurationError, match="use that version, or another schema"):
        await PostgresCheckpointStore(postgres.dsn, schema=schema, create_schema=True).open()


async def test_a_role_without_rights_is_refused_by_their_names(postgres, schema):
    """The rights of processors are less than those of ``eventproc store init``."""
    role = f"r{uuid.uuid4().hex}"
    async with PostgresCheckpointStore(postgres.dsn, schema=schema, create_schema=True):
        pass
    dsn = postgres.dsn.replace("postgres:local", f"{role}:local")
    for grant, message in (
        (f"CREATE ROLE {role} LOGIN PASSWORD 'local'", "permission denied"),
        (f"GRANT USAGE ON SCHEMA {schema} TO {role}", "permission denied"),
        (f"GRANT SELECT ON {schema}.version TO {role}", "checkpoint: DELETE"),
        (f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role}", None),
    ):
        await asyncio.to_thread(execute, postgres, grant)
        store = PostgresCheckpointStore(dsn, schema=schema)
        if message is not None:
            with pytest.raises(ConfigurationError, match=message):
                await store.open()
            continue
        async with store:
            claim = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=None)
            [result] = await store.claim_ownership(GROUP, [claim])

            assert result.outcome is WriteOutcome.WON


@pytest.mark.parametrize(
    ("old", "new"), [("local@", "hush@"), ("/postgres", "/nowhere")], ids=["password", "database"]
)
async def test_a_connection_that_the_server_refuses_is_a_wrong_setting(postgres, old, new):
    """A restart would not help; the message does not have the password."""
    store = PostgresCheckpointStore(postgres.dsn.replace(old, new))
    with pytest.raises(ConfigurationError, match="refuses") as refused:
        await store.open()

    assert "hush" not in f"{refused.value} {store!r}"


async def test_a_server_that_does_not_listen_may_come_back(postgres):
    """That is no wrong setting."""
    dsn = postgres.dsn_through(1)
    with pytest.raises(StoreUnavailableError, match="Connection refused"):
        await PostgresCheckpointStore(dsn).open()


@pytest.mark.parametrize("dsn", ["", "hush", "postgresql://a:hu sh@host/", "postgresql://h?hush=1"])
def test_what_is_no_connection_string_is_refused_and_not_quoted(dsn):
    """It may have a password."""
    with pytest.raises(ConfigurationError, match="postgresql://USER:PASSWORD@HOST") as refused:
        PostgresCheckpointStore(dsn)

    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("name", ["", "Upper", "a-b", 'a"b', "é", "a" * 64])
def test_a_name_that_no_schema_has_is_refused(name):
    """It becomes part of statements."""
    with pytest.raises(ConfigurationError, match="small letters"):
        check_name(name)


async def test_a_value_that_the_database_cannot_store_is_refused(postgres, schema):
    """A retry could not help, so the error says that it is final."""
    async with PostgresCheckpointStore(postgres.dsn, schema=schema, create_schema=True) as store:
        claim = OwnershipClaim(partition_id="0", owner_id="a\0b", expected_etag=None)
        [result] = await store.claim_ownership(GROUP, [claim])

    assert result.outcome is WriteOutcome.UNKNOWN
    assert result.error is not None
    assert result.error.is_final
