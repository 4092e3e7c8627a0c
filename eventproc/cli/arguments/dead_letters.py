"""Parse ``--dead-letters blob:CONTAINER`` or ``--dead-letters eventhub:NAME``."""

from eventproc.cli.arguments.stores import STORAGE_VARIABLE
from eventproc.errors import ConfigurationError
from eventproc.ports import DeadLetterSink


def make_sink(
    spec: str, *, connection_string: str | None, storage_connection_string: str | None
) -> DeadLetterSink | None:
    """Make the sink that the option names, without connecting it; ``None`` for an empty option.

    Raises:
        ConfigurationError: The option has another form, or the connection string is missing.
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
        from eventproc.dead_letters.blob import BlobDeadLetterSink  # noqa: PLC0415 - an extra

        return BlobDeadLetterSink.from_connection_string(storage_connection_string, place)
    if kind == "eventhub" and place:
        from eventproc.sources.eventhubs import EventHubDeadLetterSink  # noqa: PLC0415

        return EventHubDeadLetterSink.from_connection_string(
            connection_string or "", eventhub_name=place
        )
    raise ConfigurationError(
        f"--dead-letters is {spec!r}: give blob:CONTAINER, for example blob:dead-letters, or "
        "eventhub:NAME, for example eventhub:dead"
    )
