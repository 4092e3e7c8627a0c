"""Recipes and secrets: pickling, and use on another machine."""

import pickle

import pytest

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc.errors import ConfigurationError
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource
from spark_integration import Secret, SourceRecipe, StoreRecipe

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


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("no_such_module_of_ours:hub", "cannot be imported"),
        ("json:no_such_function", "no such function"),
        ("json", "no such function"),
    ],
)
def test_a_function_that_does_not_exist_is_refused(function, words):
    """The message names the option."""
    with pytest.raises(ConfigurationError, match=f"sourceRecipe.*{words}"):
        SourceRecipe(function=function).make(EventHubOptions())


def test_a_store_is_made_from_its_recipe(tmp_path):
    """On whatever machine the recipe arrives."""
    recipe = pickle.loads(pickle.dumps(StoreRecipe(spec=f"sqlite:{tmp_path}/group.db")))

    assert isinstance(recipe.make(), SqliteCheckpointStore)
