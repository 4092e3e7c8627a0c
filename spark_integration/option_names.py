"""Replaces names of Python arguments in error messages by the names of Spark's options."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from eventproc.errors import EventProcError

OPTIONS: Final[Mapping[str, str]] = {
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
    "custom_endpoint": "customEndpoint",
    "eventhub_name": "eventHubName",
    "fully_qualified_namespace": "fullyQualifiedNamespace",
    "http_proxy": "proxy",
}
"""The option of each argument."""

RECIPES: Final[Mapping[str, str]] = {
    "account_url": "StoreRecipe.account",
    "fully_qualified_namespace": "SourceRecipe.namespace",
}
"""The field of a recipe for each argument that the recipe passes on."""

_PHRASES: Final = (
    (r"EventHubOptions\.(?=custom_endpoint\b)", ""),
    (r"use EventHubSource\.from_connection_string for", "give connectionString for"),
    (r"; use KafkaEventSource\.from_connection_string for a connection string", ""),
    (r"config sets '([^']+)', which cannot be set", r"kafka.\1 cannot be set"),
    (r"; to begin at the first whenever a hub was created again, set recreated_hub .*", ""),
    (r"is an argument of publish", "is the option operationTimeout"),
    (r"the servers are the first argument", "the servers are kafka.bootstrap.servers"),
)
"""Phrases of messages that make sense only in Python, and their replacements."""


@contextmanager
def naming_options() -> Iterator[None]:
    """Make errors that leave the block name Spark's options instead of Python arguments."""
    with _renaming(OPTIONS, _PHRASES):
        yield


@contextmanager
def naming_recipes() -> Iterator[None]:
    """Make errors that leave the block name fields of recipes instead of Python arguments."""
    with _renaming(RECIPES, ()):
        yield


@contextmanager
def _renaming(names: Mapping[str, str], phrases: tuple[tuple[str, str], ...]) -> Iterator[None]:
    try:
        yield
    except EventProcError as error:
        error.args = tuple(
            _renamed(each, names, phrases) if isinstance(each, str) else each for each in error.args
        )
        raise


def _renamed(message: str, names: Mapping[str, str], phrases: tuple[tuple[str, str], ...]) -> str:
    for pattern, words in phrases:
        message = re.sub(pattern, words, message)
    either = "|".join(map(re.escape, names))
    return re.sub(rf"\b({either})\b", lambda found: names[found[0]], message)
