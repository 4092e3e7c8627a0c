"""``--store`` arguments: what they may be, and the errors for others."""

import pytest

from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc._command.arguments.access import StorageAccess
from eventproc._command.arguments.stores import open_store
from eventproc.errors import ConfigurationError

STORAGE = "DefaultEndpointsProtocol=https;AccountName=contoso;AccountKey=c2VjcmV0;"


def test_a_sqlite_store_is_a_path(tmp_path):
    """Nothing is created before the store is opened."""
    store = open_store(f"sqlite:{tmp_path / 'group.db'}", StorageAccess())

    assert isinstance(store, SqliteCheckpointStore)
    assert list(tmp_path.iterdir()) == []


def test_a_blob_store_is_a_container_name():
    """The account comes from the connection string."""
    store = open_store("blob:checkpoints", StorageAccess(storage_connection_string=STORAGE))

    assert isinstance(store, BlobCheckpointStore)


def test_a_table_store_is_a_table_name():
    """The account comes from the connection string, or is named for an identity."""
    for access in (
        StorageAccess(storage_connection_string=STORAGE),
        StorageAccess(storage_account="contoso"),
    ):
        store = open_store("tables:leases", access)

        assert repr(store) == ("TableCheckpointStore('contoso.table.core.windows.net/leases')")


def test_a_blob_store_may_name_the_namespace_of_its_blobs():
    """For a group shared with processors that spell the namespace differently."""
    access = StorageAccess(storage_connection_string=STORAGE)
    store = open_store("blob:checkpoints?namespace=localhost", access)

    assert vars(store)["_namespace"] == "localhost"
    assert not vars(store)["_exact_names"]


def test_a_blob_store_may_keep_the_case_of_names():
    """Beside another setting, and in any order."""
    access = StorageAccess(storage_connection_string=STORAGE)
    store = open_store("blob:checkpoints?names=exact&namespace=localhost", access)

    assert vars(store)["_namespace"] == "localhost"
    assert vars(store)["_exact_names"]


def test_a_namespace_that_no_blob_can_have_is_not_taken_for_the_option():
    """``--namespace`` is the one that is connected to."""
    with pytest.raises(
        ConfigurationError, match=r"^namespace is 'a/b': give a name without a slash"
    ):
        open_store(
            "blob:checkpoints?namespace=a/b", StorageAccess(storage_connection_string=STORAGE)
        )


@pytest.mark.parametrize(
    "setting", ["?", "?namespace=", "?prefix=x", "?namespace", "?names=upper", "?names=exact&"]
)
def test_another_setting_of_a_container_is_refused(setting):
    """The message says which setting there is."""
    with pytest.raises(ConfigurationError, match="give namespace=HOST"):
        open_store(f"blob:checkpoints{setting}", StorageAccess(storage_connection_string=STORAGE))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("group.db", "give sqlite:PATH"),
        ("sqlite:", "give sqlite:PATH"),
        ("redis:localhost", "give sqlite:PATH"),
        ("blob:checkpoints", "EVENTPROC_STORAGE_CONNECTION_STRING"),
        ("tables:", "give sqlite:PATH"),
        ("tables:leases", "EVENTPROC_STORAGE_CONNECTION_STRING"),
        ("sqlite:group.db?namespace=x", "no settings after a question mark"),
        ("tables:leases?namespace=x", "no settings after a question mark"),
        ("postgres:", "give sqlite:PATH"),
        ("postgres:NOT_SET_DSN", "the environment variable 'NOT_SET_DSN' is not set"),
        ("postgres:EMPTY_DSN?name=x", "give schema=NAME"),
        ("sqlite:/nowhere/at/all/group.db", "there is no folder /nowhere/at/all"),
    ],
)
def test_another_store_is_refused_with_the_remedy(spec, message):
    """The message names the option."""
    with pytest.raises(ConfigurationError, match=r"--store") as refused:
        open_store(spec, StorageAccess())

    assert message in str(refused.value)


def test_the_error_for_a_wrong_connection_string_does_not_repeat_it():
    """It may contain a key."""
    with pytest.raises(ConfigurationError) as refused:
        open_store(
            "blob:checkpoints", StorageAccess(storage_connection_string="AccountKey=hush;oops")
        )

    assert "hush" not in str(refused.value)


def test_a_postgres_store_is_the_name_of_a_variable(monkeypatch):
    """The connection string has a password."""
    monkeypatch.setenv("ORDERS_DSN", "postgresql://orders:hush@db.example.com/orders")
    default = open_store("postgres:ORDERS_DSN", StorageAccess())
    other = open_store("postgres:ORDERS_DSN?schema=group_b", StorageAccess())

    assert "db.example.com:5432, database 'orders', schema 'eventproc'" in repr(default)
    assert "schema 'group_b'" in repr(other)
    assert "hush" not in repr(default)


def test_the_variable_of_postgres_may_name_a_file(monkeypatch, tmp_path):
    """As with each connection string."""
    (tmp_path / "dsn").write_text("postgresql://u:hush@db.example.com/orders\n")
    monkeypatch.setenv("ORDERS_DSN", f"file:{tmp_path}/dsn")

    assert "db.example.com" in repr(open_store("postgres:ORDERS_DSN", StorageAccess()))


@pytest.mark.parametrize("spec", ["postgres://u:hush@h/d", "postgresql://u:hush@h/d"])
def test_a_connection_string_as_an_argument_is_refused_and_not_repeated(spec):
    """Other users of the machine can see arguments."""
    with pytest.raises(ConfigurationError, match="an environment variable") as refused:
        open_store(spec, StorageAccess())

    assert "hush" not in str(refused.value)
