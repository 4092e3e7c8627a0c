"""Recipes and secrets: pickling, and use on another machine."""

import pickle
import sys

import pytest

from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.postgres import PostgresCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from checkpointstores.tables import TableCheckpointStore
from eventproc._base.identity import Network
from eventproc._base.network import HttpProxy
from eventproc.errors import ConfigurationError, MissingExtraError
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource
from spark_integration import NetworkRecipe, Secret, SourceRecipe, StoreRecipe
from spark_integration._recipes import network_of

CONNECTION = (
    "Endpoint=sb://contoso.servicebus.windows.net/;SharedAccessKeyName=listen;"
    "SharedAccessKey=c2VjcmV0;EntityPath=orders"
)


def make_hub(options: EventHubOptions) -> EventHubSource:
    """Make a source, as a user's function does."""
    return EventHubSource.from_connection_string(CONNECTION, options=options)


def test_a_secret_is_looked_up_where_it_is_used(monkeypatch, tmp_path):
    """A pickle contains the reference and not the secret."""
    monkeypatch.setenv("HUB", "one")
    (tmp_path / "hub").write_text("two\n")
    by_name, by_path = Secret("env:HUB"), Secret(f"file:{tmp_path}/hub")

    assert [pickle.loads(pickle.dumps(s)).read() for s in (by_name, by_path)] == ["one", "two"]
    assert b"one" not in pickle.dumps(by_name)
    assert (str(by_name), repr(Secret(CONNECTION))) == ("env:HUB", "Secret()")


def test_the_error_for_a_missing_secret_names_its_variable_or_file(tmp_path):
    """The message does not contain other secrets."""
    with pytest.raises(ConfigurationError, match="EVENTPROC_NO_SUCH"):
        Secret("env:EVENTPROC_NO_SUCH").read()
    with pytest.raises(ConfigurationError, match="nowhere"):
        Secret(f"file:{tmp_path}/nowhere").read()


def test_a_function_makes_the_source_with_the_options_it_is_given():
    """The function gets the EventHubOptions to use."""
    recipe = SourceRecipe(function=f"{__name__}:make_hub")
    source = recipe.make(EventHubOptions(prefetch=7, is_exclusive=False))

    assert isinstance(source, EventHubSource)
    assert source.eventhub_name == "orders"


def test_a_store_of_an_unknown_kind_names_the_kinds():
    """A mistyped kind looks like a module that is not installed."""
    with pytest.raises(ConfigurationError, match=r"'blobs'.*A store is sqlite:PATH, blob:CONT"):
        StoreRecipe(spec="blobs:checkpoints").make()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("no_such_module_of_ours:hub", "cannot be imported"),
        ("json:no_such_function", "no function or class 'no_such_function'; it has dump"),
        ("json", "no function or class"),
    ],
)
def test_a_function_that_does_not_exist_is_refused(function, words):
    """The message names the field."""
    with pytest.raises(ConfigurationError, match=f"SourceRecipe.function.*{words}"):
        SourceRecipe(function=function).make(EventHubOptions())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            SourceRecipe,
            "SourceRecipe.connection is not given, SourceRecipe.namespace is not given and",
        ),
        (
            lambda: SourceRecipe(connection=Secret("env:A"), namespace="b"),
            "SourceRecipe.namespace is given and SourceRecipe.connection is given: ",
        ),
        (
            lambda: SourceRecipe(namespace="b"),
            "SourceRecipe.namespace is 'b' and SourceRecipe.eventhub_name is not given: ",
        ),
        (
            lambda: SourceRecipe(namespace="sb://contoso/", eventhub_name="orders"),
            "SourceRecipe.namespace is 'sb://contoso/': give a bare host name such as",
        ),
        (
            lambda: StoreRecipe(spec="blob:box"),
            "StoreRecipe.spec is 'blob:box', StoreRecipe.storage is not given and",
        ),
        (
            lambda: StoreRecipe(spec="sqlite:a.db", account="contoso"),
            "StoreRecipe.account is given and StoreRecipe.spec is 'sqlite:a.db': ",
        ),
        (
            lambda: StoreRecipe(spec="blob:box", account="not an account"),
            "StoreRecipe.account is 'not an account': give the account's name,",
        ),
    ],
)
def test_a_recipe_that_cannot_work_names_its_fields(make, message):
    """A fleet's user wrote them in Python, and no option of Spark."""
    with pytest.raises(ConfigurationError) as refused:
        make()

    assert str(refused.value).startswith(message)


def test_a_store_is_made_from_its_recipe(tmp_path):
    """On whatever machine the recipe arrives."""
    recipe = pickle.loads(pickle.dumps(StoreRecipe(spec=f"sqlite:{tmp_path}/group.db")))

    assert isinstance(recipe.make(), SqliteCheckpointStore)


# --- with an identity ----------------------------------------------------------------------------

NAMESPACE = "contoso.servicebus.windows.net"


def test_a_hub_is_reached_with_the_identity_of_the_process():
    """A pickle has only names; the credential is made where the recipe arrives."""
    recipe = pickle.loads(pickle.dumps(SourceRecipe(namespace=NAMESPACE, eventhub_name="orders")))
    source = recipe.make(EventHubOptions())

    assert isinstance(source, EventHubSource)
    assert (source.fully_qualified_namespace, source.eventhub_name) == (NAMESPACE, "orders")


def test_the_identity_is_asked_through_the_same_network():
    """Entra ID is reached with the certificates and the proxy of the connection."""
    proxy = HttpProxy(host="proxy", port=8080)
    source = SourceRecipe(namespace=NAMESPACE, eventhub_name="orders").make(
        EventHubOptions(ca_bundle="ca.pem", http_proxy=proxy)
    )
    recipe = StoreRecipe(
        spec="blob:box",
        account="contoso",
        network=NetworkRecipe(ca_bundle="ca.pem", proxy=Secret("http://proxy:8080")),
    )
    store = pickle.loads(pickle.dumps(recipe)).make()
    wanted = Network(ca_bundle="ca.pem", proxy=proxy).credential()

    assert isinstance(source, EventHubSource)
    assert isinstance(store, BlobCheckpointStore)
    assert source._hub.credential is wanted
    assert source._hub.options.http_proxy == proxy
    assert store._connection._new_client.keywords["credential"] is wanted
    assert store._connection._ca_bundle == "ca.pem"
    assert store._connection._new_client.keywords["proxies"]["https"] == "http://proxy:8080"


def test_a_connection_string_is_used_through_the_same_network():
    """Certificates and proxy do not depend on the credential."""
    key = "DefaultEndpointsProtocol=https;AccountName=contoso;AccountKey=c2VjcmV0;"
    network = NetworkRecipe(ca_bundle="ca.pem", proxy=Secret("http://proxy:8080"))
    store = StoreRecipe(spec="blob:box", storage=Secret(key), network=network).make()

    assert isinstance(store, BlobCheckpointStore)
    assert store._connection._ca_bundle == "ca.pem"
    assert store._connection._new_client.keywords["proxies"]["https"] == "http://proxy:8080"


def test_a_table_is_reached_as_a_container_is():
    """By the account's name, at its table endpoint, or by a connection string."""
    key = "DefaultEndpointsProtocol=https;AccountName=contoso;AccountKey=c2VjcmV0;"
    for recipe in (
        StoreRecipe(spec="tables:box", account="contoso"),
        StoreRecipe(spec="tables:box", storage=Secret(key)),
    ):
        store = pickle.loads(pickle.dumps(recipe)).make()

        assert isinstance(store, TableCheckpointStore)
        assert store._connection.place == "contoso.table.core.windows.net/box"


def test_the_connection_string_of_postgresql_is_in_a_variable_of_each_machine(monkeypatch):
    """It is not sent, and looked up where the store is made."""
    recipe = pickle.loads(pickle.dumps(StoreRecipe(spec="postgres:ORDERS_DSN")))
    with pytest.raises(ConfigurationError, match="'ORDERS_DSN' is not set"):
        recipe.make()
    monkeypatch.setenv("ORDERS_DSN", "postgresql://anna:hush@db/orders")

    assert isinstance(recipe.make(), PostgresCheckpointStore)


def test_a_connection_string_of_postgresql_is_refused_and_not_shown():
    """It would be visible in Spark's UI."""
    for spec in ("postgresql://anna:hush@db/orders", "postgres://anna:hush@db/orders"):
        with pytest.raises(ConfigurationError, match="name of an environment variable") as refused:
            StoreRecipe(spec=spec)
        assert "hush" not in str(refused.value)


def test_a_proxy_may_be_a_secret(monkeypatch):
    """It is looked up, and checked, where it is used."""
    recipe = pickle.loads(pickle.dumps(NetworkRecipe(proxy=Secret("env:PROXY"))))
    monkeypatch.setenv("PROXY", "http://anna:hush@proxy:8080")

    assert network_of(recipe).proxy == HttpProxy(
        host="proxy", port=8080, username="anna", password="hush"
    )
    monkeypatch.setenv("PROXY", "anna:hush")
    with pytest.raises(ConfigurationError, match="give http://HOST:PORT") as refused:
        network_of(recipe)
    assert "hush" not in str(refused.value)


def test_a_proxy_that_is_no_secret_is_checked_at_once():
    """Before anything is sent to an executor."""
    with pytest.raises(ConfigurationError, match="give http://HOST:PORT"):
        NetworkRecipe(proxy=Secret("proxy:8080"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: SourceRecipe(namespace=NAMESPACE, eventhub_name="o").make(
            EventHubOptions(ca_bundle="missing.pem")
        ),
        lambda: StoreRecipe(
            spec="blob:box", account="contoso", network=NetworkRecipe(ca_bundle="missing.pem")
        ).make(),
    ],
)
def test_a_machine_without_the_extra_says_which_one(monkeypatch, make):
    """The command to install it is in the message."""
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    monkeypatch.delitem(sys.modules, "eventproc._base.identity", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install 'eventproc\[identity\]'"):
        make()
