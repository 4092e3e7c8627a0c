"""The verbs of ``eventproc dead-letters``."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Annotated

import typer

from eventproc._command.arguments import options
from eventproc._command.arguments.access import HubAccess
from eventproc._command.arguments.dead_letters import (
    LettersAddress,
    Place,
    Wanted,
)
from eventproc._command.arguments.modules import load_handler
from eventproc._command.arguments.options import ChangeMode
from eventproc._command.arguments.sources import make_publisher, make_source
from eventproc._command.group.letters import (
    counts_text,
    letters_json,
    letters_table,
    letters_text,
    results_json,
    whole_json,
    whole_text,
)
from eventproc._command.terminal.console import standard_output
from eventproc._command.terminal.exits import FAILED, OK, print_error
from eventproc.dead_letters import (
    HandlerTarget,
    HubTarget,
    LetterFilter,
    LetterOutcome,
    LetterResult,
    ReplayTarget,
    matching,
)
from eventproc.dead_letters import drop as drop_letters
from eventproc.dead_letters import replay as replay_letters
from eventproc.errors import ConfigurationError, EventProcError
from eventproc.models import StoredLetter

RULE_WIDTH = 40
"""Dashes between two letters."""

Limit = Annotated[
    int, typer.Option(min=0, metavar="N", help="Show at most N rows of the table; 0: all.")
]


async def list_(
    *,
    place: Place,
    address: LettersAddress,
    wanted: Wanted,
    limit: Limit = 100,
    output: options.Format = options.OutputFormat.TABLE,
) -> None:
    """Show the dead letters of a place, a line for each.

    Exit codes: 0 shown, 2 an option is wrong, 3 the place did not answer.
    """
    # One more than is shown, to know whether there are more.
    is_cut = limit and output is options.OutputFormat.TABLE
    letters_max = limit + 1 if is_cut else None
    found = await _matching(place, address, wanted.filter(), letters_max)
    _print_list(place, found, output, limit)


async def show(
    *,
    place: Place,
    address: LettersAddress,
    wanted: Wanted,
    output: options.Format = options.OutputFormat.TABLE,
) -> int:
    """Show dead letters in full: the event with its body, and the error with its traceback.

    With --format json, all letters are one list; a damaged one has its bytes in Base64.

    Exit codes: 0 shown, 1 none matches, 2 an option is wrong, 3 the place did not answer.
    """
    found = await _matching(place, address, wanted.filter())
    if output is options.OutputFormat.JSON:
        print(json.dumps([whole_json(stored) for stored in found]))
    else:
        console = standard_output()
        for number, stored in enumerate(found):
            if number:
                console.print("-" * RULE_WIDTH)
            console.print(whole_text(stored), highlight=False, soft_wrap=True)
    if not found:
        print_error(f"no dead letter of {place} matches")
        return FAILED
    return OK


async def replay(
    *,
    place: Place,
    address: LettersAddress,
    wanted: Wanted,
    publish_to: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Publish to this event hub, topic or prefix of queues, instead of the one that "
            "the letters came from.",
        ),
    ] = "",
    handler: Annotated[
        str,
        typer.Option(
            metavar="MODULE:CLASS",
            help="Call this handler with the events, here and now, instead of publishing them.",
        ),
    ] = "",
    attempts: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="With --handler: how often each event is tried."),
    ] = 3,
    mode: ChangeMode,
) -> int:
    """Deliver the events of dead letters again, one by one, and remove those letters.

    By default the events are published to the hub that they came from, so all consumer groups of
    the hub get them as new events, also groups that have handled them. --handler delivers them to
    one handler alone. Events of one key stay in order. If this process is ended or killed, the same
    command continues: only the event that was being delivered comes twice.

    Exit codes: 0 all replayed (or shown, with --dry-run), 1 some stay or the answer was no, 2 an
    option is wrong and nothing was changed, 3 the place or the hub did not answer: run it again.
    """
    if publish_to and handler:
        raise ConfigurationError("give --publish-to or --handler, not both")
    through = HandlerTarget(load_handler(handler), attempts_max=attempts) if handler else None
    letter_filter = wanted.filter()
    async with address.reader(place, removes=not mode.dry_run) as reader:
        found = await matching(reader, letter_filter)
        if mode.dry_run or not found:
            _print_list(place, found, mode.output, None)
            return OK
        target: ReplayTarget
        if through is not None:
            target, name = through, f"through {handler}"
        else:
            hub = publish_to or _hub_of(found, address)
            publisher = make_publisher(address, hub)
            namespace = _namespace_of(address, hub)
            target = HubTarget(publisher, eventhub_name=hub, fully_qualified_namespace=namespace)
            name = f"to {hub}"
        question = f"Replay {letters_text(len(found))} {name}, and remove what is delivered?"
        if not await mode.confirmed(question):
            return FAILED
        async with target:
            return await _replay(place, replay_letters(reader, target, found), mode)


async def drop(
    *,
    place: Place,
    address: LettersAddress,
    wanted: Wanted,
    damaged: Annotated[
        bool, typer.Option("--damaged", help="Remove only what cannot be read.")
    ] = False,
    mode: ChangeMode,
) -> int:
    """Remove dead letters without delivering their events.

    Exit codes: 0 removed (or shown, with --dry-run), 1 the answer was no, 2 an option is wrong and
    nothing was changed, 3 the place did not answer: run it again.
    """
    letter_filter = wanted.filter()
    if damaged and not letter_filter.matches_all:
        raise ConfigurationError(
            "--damaged letters cannot be filtered: leave the other options out"
        )
    async with address.reader(place, removes=not mode.dry_run) as reader:
        every = await matching(reader, letter_filter)
        found = [stored for stored in every if (stored.letter is None) is damaged]
        if mode.dry_run or not found:
            _print_list(place, found, mode.output, None)
            return OK
        question = f"Remove {letters_text(len(found))} of {place}, and deliver nothing?"
        if not await mode.confirmed(question):
            return FAILED
        dropped = [stored async for stored in drop_letters(reader, found)]
        if not mode.is_table:
            print(json.dumps(letters_json(place, dropped)))
        else:
            print(f"{letters_text(len(dropped))} removed.")
        return OK


async def _replay(place: str, replayed: AsyncIterator[LetterResult], mode: ChangeMode) -> int:
    results: list[LetterResult] = []
    try:
        async for result in replayed:
            results.append(result)
            if result.outcome is not LetterOutcome.REPLAYED:
                print_error(f"{_name_of(result.stored)} stays: {result.reason}")
    except EventProcError:
        print_error(f"{counts_text(results)} until now. The same command continues there")
        raise
    if not mode.is_table:
        print(json.dumps(results_json(place, results)))
    else:
        print(f"{counts_text(results)}.")
    is_done = all(result.outcome is LetterOutcome.REPLAYED for result in results)
    return OK if is_done else FAILED


async def _matching(
    place: str, address: LettersAddress, wanted: LetterFilter, letters_max: int | None = None
) -> list[StoredLetter]:
    async with address.reader(place, removes=False) as reader:
        return await matching(reader, wanted, letters_max=letters_max)


def _name_of(stored: StoredLetter) -> str:
    return stored.place if stored.letter is None else stored.letter.letter_id


def _hub_of(letters: Sequence[StoredLetter], access: HubAccess) -> str:
    """Return the hub that all letters came from.

    Raises:
        ConfigurationError: They are of several, or the connection string is of another namespace.
    """
    groups = [stored.letter.group for stored in letters if stored.letter is not None]
    hubs = {group.key[1]: group.eventhub_name for group in groups}
    if len(hubs) > 1:
        raise ConfigurationError(
            f"these letters are of the event hubs {', '.join(sorted(hubs))}: choose one of them "
            "with --eventhub, or give --publish-to"
        )
    if not hubs:
        raise ConfigurationError(
            "none of these letters can be read: `eventproc dead-letters drop --damaged` removes "
            "them"
        )
    (hub,) = hubs.values()
    namespace = _namespace_of(access, hub)
    others = sorted({group.key[0] for group in groups} - {namespace})
    if others:
        raise ConfigurationError(
            f"these letters are of {', '.join(others)}, and the connection string is of "
            f"{namespace}: give that of theirs, or say with --publish-to {hub} that you mean this "
            "one"
        )
    return hub


def _namespace_of(access: HubAccess, hub: str) -> str:
    """Return the namespace that is published to, as letters have it."""
    namespace = access.namespace or make_source(access, hub).fully_qualified_namespace
    return namespace.lower()


def _print_list(
    place: str, letters: Sequence[StoredLetter], output: options.OutputFormat, limit: int | None
) -> None:
    if output is options.OutputFormat.JSON:
        print(json.dumps(letters_json(place, letters)))
    else:
        standard_output().print(letters_table(letters, rows_max=limit or None))
