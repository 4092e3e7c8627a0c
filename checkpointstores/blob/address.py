"""Check the address of a blob container before anything is connected."""

import re
from typing import Final
from urllib.parse import urlsplit

from eventproc.errors import ConfigurationError
from eventproc.identity.storage_account import require_account
from eventproc.models import ConsumerGroup

_CONTAINER_NAME: Final = re.compile(r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*")


def checked_address(
    account_url: str, container: str, *, has_token: bool, namespace: str | None
) -> str:
    """Check the address of a container; return it without secrets, for messages and logs.

    Raises:
        ConfigurationError: the URL, the container's name or the namespace is not valid, or a token
            would be sent without TLS.
    """
    url = urlsplit(account_url)
    if url.scheme not in {"http", "https"}:
        raise ConfigurationError(
            "begin it with https://, as in https://NAME.blob.core.windows.net",
            setting="account_url",
        )
    require_account(account_url)
    if not _CONTAINER_NAME.fullmatch(container):
        raise ConfigurationError(
            "give 3 to 63 lower-case letters, digits and dashes, with a letter or digit on both "
            "sides of each dash",
            setting="container",
            value=repr(container),
        )
    if url.scheme == "http" and has_token:
        raise ConfigurationError(
            "begin it with https:// for a token credential, which is sent with each request",
            setting="account_url",
        )
    if namespace is not None:
        try:
            ConsumerGroup(fully_qualified_namespace=namespace, eventhub_name="any")
        except ConfigurationError as error:
            # Name the parameter that was given: the namespace in the blobs' names.
            error.name_settings({"fully_qualified_namespace": "namespace"})
            raise
    return f"{url.netloc.rpartition('@')[2]}{url.path.rstrip('/')}/{container}"
