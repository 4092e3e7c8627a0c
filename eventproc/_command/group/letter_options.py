"""The options of ``eventproc dead-letters``: which place, which letters, and how they change."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

import typer

from eventproc._command.arguments.access import HubAccess
from eventproc._command.arguments.dead_letters import LetterPlace, make_reader
from eventproc._command.arguments.stores import open_store
from eventproc._core.option_values import parse_time
from eventproc.dead_letters import LetterFilter
from eventproc.errors import ConfigurationError
from eventproc.ports import DeadLetterReader

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
    async def reader(self, place: LetterPlace, *, removes: bool) -> AsyncIterator[DeadLetterReader]:
        """Yield an open reader.

        Raises:
            ConfigurationError: An option is missing or invalid.
        """
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
