"""Errors of a processor as those of Azure's client, for ``on_error``."""

from azure.core.exceptions import AzureError
from azure.eventhub.exceptions import (
    AuthenticationError,
    ConnectError,
    ConnectionLostError,
    EventHubError,
)

from eventproc.errors import (
    EventProcError,
    ReceiverDisplacedError,
    SourceError,
    SourceRejectedError,
    StoreError,
    SuspectSettingError,
)


class WrongPartitionError(ValueError):
    """The hub has no such partition."""


def azures_error(error: Exception) -> Exception:
    """Return what Azure's client would have raised: what caused this error, or one like it.

    An error of the program or of its own store is returned as it is.
    """
    link: BaseException | None = error
    is_of_store = is_of_source = is_refused = False
    while isinstance(link, Exception):
        if isinstance(link, WrongPartitionError):
            return ValueError(str(link))
        if isinstance(link, EventHubError | AzureError):
            return link
        if not isinstance(link, EventProcError) and (link is error or is_of_store):
            return link
        is_of_store |= isinstance(link, StoreError)
        is_of_source |= isinstance(link, SourceError)
        is_refused |= isinstance(link, SourceRejectedError | SuspectSettingError)
        link = link.__cause__
    if isinstance(error, ReceiverDisplacedError):
        return ConnectionLostError(str(error))
    if is_refused:  # A hub or a group that does not exist, too: so Azure's client does.
        return AuthenticationError(str(error))
    return ConnectError(str(error)) if is_of_source else error
