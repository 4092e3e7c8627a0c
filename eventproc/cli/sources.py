"""From a connection string to the event hub it leads to."""

from eventproc.cli.extras import needing
from eventproc.errors import ConfigurationError
from eventproc.ports import EventSource

HUB_VARIABLE = "EVENTPROC_CONNECTION_STRING"
"""Environment variable: the connection string of the Event Hubs namespace, or of one hub."""


def make_source(connection_string: str | None, eventhub: str | None) -> EventSource:
    """Make the source of an event hub; nothing is connected yet.

    Raises:
        ConfigurationError: No connection string was given, or it cannot work.
    """
    if not connection_string:
        raise ConfigurationError(
            "which Event Hubs namespace? Set the environment variable "
            f"{HUB_VARIABLE} to its connection string (`eventproc emulator` prints one)"
        )
    with needing("eventhubs"):
        from eventproc.sources.eventhubs import EventHubSource  # noqa: PLC0415 - it is an extra
    return EventHubSource.from_connection_string(connection_string, eventhub_name=eventhub or None)
