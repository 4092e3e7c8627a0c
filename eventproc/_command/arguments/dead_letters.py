"""The places of dead letters, such as ``blob:CONTAINER``: their sinks, and their readers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote

from eventproc._command.access.hub import HUB_VARIABLE, HubAccess
from eventproc._command.access.storage import StorageAccess
from eventproc._command.arguments.sources import KAFKA_ENDPOINT, broker_url
from eventproc.errors import ConfigurationError
from eventproc.ports import CheckpointStore, DeadLetterReader, DeadLetterSink

FORMS: Final = (
    "blob:CONTAINER, for example blob:dead-letters; eventhub:NAME, for example eventhub:dead; or "
    "queue:NAME of a RabbitMQ broker"
)

_UNREADABLE: Final = {
    "function": "a FunctionDeadLetterSink gives letters to a function of yours: read them where "
    "that function puts them",
    "memory": "a MemoryDeadLetterSink is in the memory of its process: read its `letters` there",
    "kafka": "there is no sink for Kafka topics; an event hub's letters are eventhub:NAME",
}
"""Sinks that have no place which the command could read, and why."""

_SETTINGS: Final = {
    "blob": ("prefix",),
    "eventhub": ("consumer-group",),
    "queue": ("delivery-limit",),
}


@dataclass(frozen=True, slots=True)
class LetterPlace:
    """A place of dead letters, as given: ``KIND:NAME?SETTING=VALUE``."""

    kind: str
    name: str
    settings: Mapping[str, str]


def parse_place(option: str, spec: str, *, is_read: bool) -> LetterPlace:
    """Parse the place that an option or an argument gives.

    Args:
        option: Its name, for the messages.
        spec: Its text.
        is_read: Whether letters are to be read, so settings of a reader are allowed.

    Raises:
        ConfigurationError: There is no such place, or it cannot be read.
    """
    kind, _, rest = spec.partition(":")
    name, _, query = rest.partition("?")
    if is_read and kind in _UNREADABLE:
        raise ConfigurationError(f"{option} {spec} cannot be read: {_UNREADABLE[kind]}")
    if kind not in _SETTINGS or not name:
        raise ConfigurationError(f"{option} is {spec!r}: give {FORMS}")
    settings = {}
    for part in filter(None, query.split("&")):
        setting, equals, value = part.partition("=")
        is_allowed = setting in _SETTINGS[kind] and (is_read or kind == "blob")
        if not (is_allowed and equals and value):
            allowed = [f"{each}=..." for each in _SETTINGS[kind] if is_read or kind == "blob"]
            raise ConfigurationError(
                f"{option} {spec}: after the question mark, {kind}: takes "
                f"{' and '.join(allowed) or 'nothing'}"
            )
        settings[setting] = unquote(value)
    return LetterPlace(kind, name, settings)


def make_sink(spec: str, hub: HubAccess, storage: StorageAccess) -> DeadLetterSink | None:
    """Make the sink that the option names, without connecting it; ``None`` for an empty option.

    Raises:
        ConfigurationError: The option has another form, or the storage account is missing.
    """
    if not spec:
        return None
    place = parse_place("--dead-letters", spec, is_read=False)
    if place.kind == "blob":
        from eventproc.dead_letters.blob import BlobDeadLetterSink  # noqa: PLC0415 - an extra

        return storage.make(
            BlobDeadLetterSink, place.name, f"--dead-letters {spec}", **place.settings
        )
    if place.kind == "queue":
        url = broker_url(hub.connection_string)
        from eventproc.sources.rabbitmq import RabbitDeadLetterSink  # noqa: PLC0415

        return RabbitDeadLetterSink(url, routing_key=place.name)
    from eventproc.sources.eventhubs import EventHubDeadLetterSink  # noqa: PLC0415

    return _over_amqp(hub).make(EventHubDeadLetterSink, place.name)


def _over_amqp(hub: HubAccess) -> HubAccess:
    """Return how the hub is reached without its Kafka endpoint."""
    return replace(
        hub.over_amqp(), connection_string=hub.connection_string.removeprefix(KAFKA_ENDPOINT)
    )


def make_reader(
    place: LetterPlace,
    hub: HubAccess,
    storage: StorageAccess,
    *,
    store: CheckpointStore | None,
) -> DeadLetterReader:
    """Make the reader of a place, without connecting it.

    Args:
        place: Where the letters are.
        hub: How to reach the namespace or the broker.
        storage: How to reach the storage account, for ``blob``.
        store: For ``eventhub``: keeps which letters are removed.

    Raises:
        ConfigurationError: A connection string is missing or invalid.
    """
    hub.check()
    return _READERS[place.kind](place, hub, storage, store)


def _blob_reader(
    place: LetterPlace, _: HubAccess, storage: StorageAccess, __: CheckpointStore | None
) -> DeadLetterReader:
    from eventproc.dead_letters.blob import BlobDeadLetterReader  # noqa: PLC0415 - an extra

    return storage.make(BlobDeadLetterReader, place.name, f"blob:{place.name}", **place.settings)


def _hub_reader(
    place: LetterPlace, hub: HubAccess, _: StorageAccess, store: CheckpointStore | None
) -> DeadLetterReader:
    if not hub.connection_string and not hub.namespace:
        raise ConfigurationError(
            f"eventhub:{place.name} needs its namespace: give --namespace to use an identity, or "
            f"set the environment variable {HUB_VARIABLE} to its connection string"
        )
    from eventproc.sources.eventhubs import EventHubDeadLetterReader, EventHubSource  # noqa: PLC0415 - an extra

    return EventHubDeadLetterReader(
        _over_amqp(hub).make(EventHubSource, place.name),
        store=store,
        consumer_group=place.settings.get("consumer-group", "$Default"),
    )


def _queue_reader(
    place: LetterPlace, hub: HubAccess, _: StorageAccess, __: CheckpointStore | None
) -> DeadLetterReader:
    url, limit = broker_url(hub.connection_string), place.settings.get("delivery-limit")
    if limit not in {None, "none"}:
        raise ConfigurationError(
            f"queue:{place.name}?delivery-limit={limit}: give delivery-limit=none if the queue has "
            "no limit, or leave it out"
        )
    from eventproc.sources.rabbitmq import RabbitDeadLetterReader  # noqa: PLC0415 - an extra

    return RabbitDeadLetterReader(url, place.name, has_delivery_limit=limit is None)


_READERS: Final[Mapping[str, Callable[..., DeadLetterReader]]] = {
    "blob": _blob_reader,
    "eventhub": _hub_reader,
    "queue": _queue_reader,
}
