"""Parse ``--dead-letters blob:CONTAINER`` or ``--dead-letters eventhub:NAME``."""

from eventproc.cli.access.hub import HubAccess
from eventproc.cli.access.storage import StorageAccess
from eventproc.errors import ConfigurationError
from eventproc.ports import DeadLetterSink


def make_sink(spec: str, hub: HubAccess, storage: StorageAccess) -> DeadLetterSink | None:
    """Make the sink that the option names, without connecting it; ``None`` for an empty option.

    Raises:
        ConfigurationError: The option has another form, or the storage account is missing.
    """
    if not spec:
        return None
    kind, _, place = spec.partition(":")
    if kind == "blob" and place:
        from eventproc.dead_letters.blob import BlobDeadLetterSink  # noqa: PLC0415 - an extra

        return storage.make(BlobDeadLetterSink, place, f"--dead-letters {spec}")
    if kind == "eventhub" and place:
        from eventproc.sources.eventhubs import EventHubDeadLetterSink  # noqa: PLC0415

        return hub.make(EventHubDeadLetterSink, place)
    raise ConfigurationError(
        f"--dead-letters is {spec!r}: give blob:CONTAINER, for example blob:dead-letters, or "
        "eventhub:NAME, for example eventhub:dead"
    )
