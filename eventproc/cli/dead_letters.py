"""From ``--dead-letters blob:CONTAINER`` or ``--dead-letters eventhub:NAME`` to a sink."""

from eventproc.cli.extras import needing
from eventproc.cli.stores import STORAGE_VARIABLE
from eventproc.errors import ConfigurationError
from eventproc.ports import DeadLetterSink


def make_sink(
    spec: str, *, connection_string: str | None, storage_connection_string: str | None
) -> DeadLetterSink | None:
    """Make the sink that the option names, if it names one; nothing is connected yet.

    Raises:
        ConfigurationError: It names no sink, or lacks what it needs.
    """
    if not spec:
        return None
    kind, _, place = spec.partition(":")
    if kind == "blob" and place:
        if not storage_connection_string:
            raise ConfigurationError(
                f"--dead-letters {spec} needs the storage account's connection string: set the "
                f"environment variable {STORAGE_VARIABLE}"
            )
        with needing("blob"):
            from eventproc.deadletters.blob import BlobDeadLetterSink  # noqa: PLC0415 - an extra
        return BlobDeadLetterSink.from_connection_string(storage_connection_string, place)
    if kind == "eventhub" and place:
        with needing("eventhubs"):
            from eventproc.sources.eventhubs import EventHubDeadLetterSink  # noqa: PLC0415
        return EventHubDeadLetterSink.from_connection_string(
            connection_string or "", eventhub_name=place
        )
    raise ConfigurationError(
        f"--dead-letters is {spec!r}: give blob:CONTAINER, for example blob:dead-letters, or "
        "eventhub:NAME, for example eventhub:dead"
    )
