"""The places of dead letters, such as ``blob:CONTAINER``, and the options that choose letters."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import unquote

import typer

from eventproc._command.arguments.access import HUB_VARIABLE, HubAccess
from eventproc._command.arguments.sources import broker_url
from eventproc._command.arguments.stores import open_store
from eventproc._core.option_values import parse_time
from eventproc.dead_letters import LetterFilter
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


Place = Annotated[
    str,
    typer.Argument(
        metavar="PLACE",
        help="Where the letters are: blob:CONTAINER, eventhub:NAME, or queue:NAME of a "
        "RabbitMQ broker. Settings may follow a question mark: "
        "blob:CONTAINER?prefix=FOLDER, eventhub:NAME?consumer-group=NAME, "
        "queue:NAME?delivery-limit=none.",
    ),
]


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
    allowed = _SETTINGS[kind] if is_read or kind == "blob" else ()
    settings = {}
    for part in filter(None, query.split("&")):
        setting, equals, value = part.partition("=")
        if not (setting in allowed and equals and value):
            possible = " and ".join(f"{each}=..." for each in allowed)
            raise ConfigurationError(
                f"{option} {spec}: after the question mark, {kind}: takes {possible or 'nothing'}"
            )
        settings[setting] = unquote(value)
    return LetterPlace(kind, name, settings)


def make_sink(spec: str, access: HubAccess) -> DeadLetterSink | None:
    """Make the sink that the option names, without connecting it; ``None`` for an empty option.

    Raises:
        ConfigurationError: The option has another form, or the storage account is missing.
    """
    if not spec:
        return None
    place = parse_place("--dead-letters", spec, is_read=False)
    if place.kind == "blob":
        from eventproc.dead_letters.blob import BlobDeadLetterSink  # noqa: PLC0415 - an extra

        what = f"--dead-letters {spec}"
        return access.in_account(BlobDeadLetterSink, place.name, what, **place.settings)
    if place.kind == "queue":
        url = broker_url(access.connection_string)
        from eventproc.sources.rabbitmq import RabbitDeadLetterSink  # noqa: PLC0415

        return RabbitDeadLetterSink(url, routing_key=place.name)
    from eventproc.sources.eventhubs import EventHubDeadLetterSink  # noqa: PLC0415

    return access.without_kafka().over_amqp(EventHubDeadLetterSink, place.name)


def make_reader(
    place: LetterPlace, access: HubAccess, store: CheckpointStore | None
) -> DeadLetterReader:
    """Make the reader of a place, without connecting it.

    Args:
        place: Where the letters are.
        access: How to reach the namespace, the broker or the storage account.
        store: For ``eventhub``: keeps which letters are removed.

    Raises:
        ConfigurationError: A connection string is missing or invalid.
    """
    access.check()
    if place.kind == "blob":
        from eventproc.dead_letters.blob import BlobDeadLetterReader  # noqa: PLC0415 - an extra

        what = f"blob:{place.name}"
        return access.in_account(BlobDeadLetterReader, place.name, what, **place.settings)
    if place.kind == "queue":
        return _queue_reader(place, broker_url(access.connection_string))
    if not access.connection_string and not access.namespace:
        raise ConfigurationError(
            f"eventhub:{place.name} needs its namespace: give --namespace to use an identity, or "
            f"set the environment variable {HUB_VARIABLE} to its connection string"
        )
    from eventproc.sources.eventhubs import EventHubDeadLetterReader, EventHubSource  # noqa: PLC0415 - an extra

    return EventHubDeadLetterReader(
        access.without_kafka().over_amqp(EventHubSource, place.name),
        store=store,
        consumer_group=place.settings.get("consumer-group", "$Default"),
    )


def _queue_reader(place: LetterPlace, url: str) -> DeadLetterReader:
    limit = place.settings.get("delivery-limit")
    if limit not in {None, "none"}:
        raise ConfigurationError(
            f"queue:{place.name}?delivery-limit={limit}: give delivery-limit=none if the queue has "
            "no limit, or leave it out"
        )
    from eventproc.sources.rabbitmq import RabbitDeadLetterReader  # noqa: PLC0415 - an extra

    return RabbitDeadLetterReader(url, place.name, has_delivery_limit=limit is None)


@dataclass(frozen=True, kw_only=True)
class LettersAddress(HubAccess):
    """How to reach the place, and the hub."""

    store: Annotated[
        str,
        typer.Option(
            "--store",
            envvar="EVENTPROC_STORE",
            metavar="STORE",
            help="For eventhub:, which deletes no single letters: the checkpoint store "
            "(sqlite:PATH, blob:CONTAINER, tables:TABLE or postgres:NAME) that keeps which of them "
            "were replayed or dropped. Use the same one each time.",
        ),
    ] = ""

    @asynccontextmanager
    async def reader(self, spec: str, *, removes: bool) -> AsyncIterator[DeadLetterReader]:
        """Yield an open reader of the place that the argument ``PLACE`` names.

        Raises:
            ConfigurationError: An option is missing or invalid.
        """
        place = parse_place("PLACE", spec, is_read=True)
        is_hub = place.kind == "eventhub"
        if is_hub and removes and not self.store:
            raise ConfigurationError(
                f"eventhub:{place.name} deletes no single letters: give --store STORE, which "
                "keeps which of them are done, for example the store of the group"
            )
        async with AsyncExitStack() as stack:
            store = None
            if is_hub and self.store:
                store = await stack.enter_async_context(open_store(self.store, self))
            yield await stack.enter_async_context(make_reader(place, self, store))


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which letters."""

    id_: Annotated[
        list[str],
        typer.Option(
            "--id",
            metavar="LETTER",
            help="Only this letter, as `list` shows it. Repeat it for more.",
            show_default=False,
        ),
    ] = ()  # type: ignore[assignment]
    partition: Annotated[
        list[str],
        typer.Option(
            "--partition",
            metavar="ID",
            help="Only events of this partition. Repeat it for more.",
            show_default=False,
        ),
    ] = ()  # type: ignore[assignment]
    since: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Only letters of events that were given up at this time or later (ISO 8601, UTC).",
        ),
    ] = ""
    until: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Only letters of events that were given up before this time."
        ),
    ] = ""
    error: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help="Only letters with this text in the class or message of the error."
        ),
    ] = ""
    eventhub: Annotated[
        str, typer.Option(metavar="NAME", help="Only events of this event hub.")
    ] = ""
    consumer_group: Annotated[
        str, typer.Option(metavar="NAME", help="Only letters of this consumer group.")
    ] = ""

    def filter(self) -> LetterFilter:
        """Return the filter that the options describe.

        Raises:
            ConfigurationError: A time has another form.
        """
        forms = "a time such as 2026-01-31T08:00:00Z"
        return LetterFilter(
            letter_ids=frozenset(self.id_),
            partition_ids=frozenset(self.partition),
            since=parse_time("--since", self.since, forms) if self.since else None,
            until=parse_time("--until", self.until, forms) if self.until else None,
            error=self.error,
            eventhub_name=self.eventhub,
            consumer_group=self.consumer_group,
        )
