"""Errors of connections name Spark's options, where the library names its settings."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeVar

from eventproc.errors import EventProcError

T = TypeVar("T")

OPTIONS: Final[Mapping[str, str]] = {
    "account_url": "storageAccount",
    "ca_bundle": "caBundle",
    "custom_endpoint": "customEndpoint",
    "eventhub_name": "eventHubName",
    "fully_qualified_namespace": "fullyQualifiedNamespace",
    "http_proxy": "proxy",
}
"""The option of each setting of a connection."""

_SETTING: Final = re.compile(rf"\b({'|'.join(OPTIONS)})\b")


@asynccontextmanager
async def naming_options(connection: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    """Open a connection; errors from then on, also those of the block, name options."""
    try:
        async with connection as opened:
            yield opened
    except EventProcError as error:
        error.args = tuple(
            _SETTING.sub(lambda found: OPTIONS[found[0]], each) if isinstance(each, str) else each
            for each in error.args
        )
        raise
