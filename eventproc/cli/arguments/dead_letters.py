"""The places of dead letters, such as ``blob:CONTAINER``: their sinks, and their readers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from eventproc.cli.arguments.sources import (
    HUB_VARIABLE,
    KAFKA_ENDPOINT,
    broker_url,
    make_source,
)
from eventproc.cli.arguments.stores import STORAGE_VARIABLE
from eventproc.errors import ConfigurationError
from eventproc.ports import CheckpointStore, DeadLetterReader, DeadLetterSink

FORMS: Final = (
    "blob:CONTAINER, for example blob:dead-letters; eventhub:NAME, for example eventhub:dead; or "
    "queue:NAME of a RabbitMQ broker"
)

LOGS: Final = ("eventhub", "stream")
"""Kinds of places that delete no single letters."""

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
    "stream": (),
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
    forms = FORMS + ("; or stream:NAME of a stream there" if is_read else "")
    if kind not in _SETTINGS or not name or (kind == "stream" and not is_read):
        raise ConfigurationError(f"{option} is {spec!r}: give {forms}")
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


def make_sink(
    spec: str, *, connection_string: str | None, storage_connection_string: str | None
) -> DeadLetterSink | None:
    """Make the sink that the option names, without connecting it; ``None`` for an empty option.

    Raises:
        ConfigurationError: The option has another form, or the connection string is missing.
    """
    if not spec:
        return None
    place = parse_place("--dead-letters", spec, is_read=False)
    if place.kind == "blob":
        storage = _storage(f"--dead-letters {spec}", storage_connection_string)
        from eventproc.dead_letters.blob import BlobDeadLetterSink  # noqa: PLC0415 - an extra

        return BlobDeadLetterSink.from_connection_string(storage, place.name, **place.settings)
    if place.kind == "queue":
        url = broker_url(connection_string or "")
        from eventproc.sources.rabbitmq.queues import RabbitDeadLetterSink  # noqa: PLC0415

        return RabbitDeadLetterSink(url, routing_key=place.name)
    from eventproc.sources.eventhubs import EventHubDeadLetterSink  # noqa: PLC0415

    return EventHubDeadLetterSink.from_connection_string(
        (connection_string or "").removeprefix(KAFKA_ENDPOINT), eventhub_name=place.name
    )


def make_reader(
    place: LetterPlace,
    *,
    connection_string: str,
    storage_connection_string: str,
    store: CheckpointStore | None,
) -> DeadLetterReader:
    """Make the reader of a place, without connecting it.

    Args:
        place: Where the letters are.
        connection_string: Of the namespace or the broker.
        storage_connection_string: Needed for ``blob``.
        store: For a place that deletes no single letters: keeps which are removed.

    Raises:
        ConfigurationError: A connection string is missing or invalid.
    """
    return _READERS[place.kind](place, connection_string, storage_connection_string, store)


def _blob_reader(
    place: LetterPlace, _: str, storage: str, __: CheckpointStore | None
) -> DeadLetterReader:
    checked = _storage(f"blob:{place.name}", storage)
    from eventproc.dead_letters.blob import BlobDeadLetterReader  # noqa: PLC0415 - an extra

    return BlobDeadLetterReader.from_connection_string(checked, place.name, **place.settings)


def _hub_reader(
    place: LetterPlace, connection_string: str, _: str, store: CheckpointStore | None
) -> DeadLetterReader:
    if not connection_string:
        raise ConfigurationError(
            f"eventhub:{place.name} needs the connection string of its namespace: set the "
            f"environment variable {HUB_VARIABLE}"
        )
    from eventproc.sources.eventhubs import (  # noqa: PLC0415 - an extra
        EventHubDeadLetterReader,
        EventHubSource,
    )

    return EventHubDeadLetterReader(
        EventHubSource.from_connection_string(
            connection_string.removeprefix(KAFKA_ENDPOINT), eventhub_name=place.name
        ),
        store=store,
        consumer_group=place.settings.get("consumer-group", "$Default"),
    )


def _queue_reader(
    place: LetterPlace, connection_string: str, _: str, __: CheckpointStore | None
) -> DeadLetterReader:
    url, limit = broker_url(connection_string), place.settings.get("delivery-limit")
    if limit not in {None, "none"}:
        raise ConfigurationError(
            f"queue:{place.name}?delivery-limit={limit}: give delivery-limit=none if the queue has "
            "no limit, or leave it out"
        )
    from eventproc.sources.rabbitmq.queues import RabbitDeadLetterReader  # noqa: PLC0415 - an extra

    return RabbitDeadLetterReader(url, place.name, has_delivery_limit=limit is None)


def _stream_reader(
    place: LetterPlace, connection_string: str, _: str, store: CheckpointStore | None
) -> DeadLetterReader:
    from eventproc.sources.rabbitmq.streams import (  # noqa: PLC0415 - an extra
        RabbitStreamDeadLetterReader,
        RabbitStreams,
    )

    source = make_source(connection_string, place.name)
    if not isinstance(source, RabbitStreams):
        raise ConfigurationError(
            f"stream:{place.name} needs the address of RabbitMQ's streams: set the environment "
            f"variable {HUB_VARIABLE} to rabbitmq-stream://USER:PASSWORD@HOST"
        )
    return RabbitStreamDeadLetterReader(source, store=store)


_READERS: Final[Mapping[str, Callable[..., DeadLetterReader]]] = {
    "blob": _blob_reader,
    "eventhub": _hub_reader,
    "queue": _queue_reader,
    "stream": _stream_reader,
}


def _storage(what: str, connection_string: str | None) -> str:
    if not connection_string:
        raise ConfigurationError(
            f"{what} needs the storage account's connection string: set the environment variable "
            f"{STORAGE_VARIABLE}"
        )
    return connection_string
