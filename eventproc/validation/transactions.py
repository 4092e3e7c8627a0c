"""May a handler use transactions with this store, this source and this configuration?"""

from eventproc.config import EventProcessorConfig
from eventproc.errors import ConfigurationError
from eventproc.ports import CheckpointStore, EventSource, ForwardingStore, QueueSource


def check_transactions(
    handler: type, store: CheckpointStore, source: EventSource, config: EventProcessorConfig
) -> None:
    """Refuse a handler that uses transactions where they could not be kept.

    Raises:
        ConfigurationError: the message says what is missing, and the remedy.
    """
    if not getattr(handler, "uses_transactions", False):
        return
    name = handler.__name__
    if store.transactions() is None:
        while isinstance(store, ForwardingStore):
            store = store.store
        raise ConfigurationError(
            f"handler {name} uses transactions, and {type(store).__name__} has none: use "
            "PostgresCheckpointStore (postgres:NAME) or SqliteCheckpointStore (sqlite:PATH), with "
            "the tables of the handler in the same database; or leave uses_transactions out, and "
            "make its writes repeatable"
        )
    if isinstance(source, QueueSource):
        raise ConfigurationError(
            f"handler {name} uses transactions, and {type(source).__name__} begins where its "
            "broker was told to, not at the checkpoint, so events could be handled again after "
            "their transaction: use an event hub or a topic, or leave uses_transactions out"
        )
    chosen = [config.initial_position, *config.initial_positions.values()]
    has_number = all(position.is_earliest or position.is_latest for position in chosen)
    if config.key_concurrency > 1 and not has_number:
        raise ConfigurationError(
            f"handler {name} uses transactions, and an initial position is a time or a number: the "
            "partition has no position until its first events are handled, so lanes could not "
            "commit. Begin at the earliest or the latest event, or handle one key at a time",
            setting="key_concurrency",
            value=str(config.key_concurrency),
        )
