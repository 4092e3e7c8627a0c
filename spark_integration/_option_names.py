"""The names that Spark's users have for the settings that errors of the library concern."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from eventproc.errors import ConfigurationError

OPTIONS: Final[Mapping[str, str]] = {
    "NetworkRecipe.proxy": "proxy",
    "SourceRecipe.connection": "connectionString",
    "SourceRecipe.eventhub_name": "eventHubName",
    "SourceRecipe.function": "sourceRecipe",
    "SourceRecipe.namespace": "fullyQualifiedNamespace",
    "StoreRecipe.account": "storageAccount",
    "StoreRecipe.spec": "checkpointStore",
    "StoreRecipe.storage": "storageConnectionString",
    "account_url": "storageAccount",
    "bootstrap_servers": "kafka.bootstrap.servers",
    "ca_bundle": "caBundle",
    "config": "the options kafka.*",
    "custom_endpoint": "customEndpoint",
    "eventhub_name": "eventHubName",
    "fully_qualified_namespace": "fullyQualifiedNamespace",
    "http_proxy": "proxy",
}
"""The option of each argument."""

RECIPES: Final[Mapping[str, str]] = {
    "account_url": "StoreRecipe.account",
    "fully_qualified_namespace": "SourceRecipe.namespace",
    "http_proxy": "NetworkRecipe.proxy",
}
"""The field of a recipe for each argument that the recipe passes on."""


@contextmanager
def naming_options() -> Iterator[None]:
    """Make errors that leave the block name Spark's options instead of Python arguments."""
    with _naming(OPTIONS):
        yield


@contextmanager
def naming_recipes() -> Iterator[None]:
    """Make errors that leave the block name fields of recipes instead of Python arguments."""
    with _naming(RECIPES):
        yield


@contextmanager
def _naming(names: Mapping[str, str]) -> Iterator[None]:
    try:
        yield
    except ConfigurationError as error:
        error.name_settings(names)
        raise
