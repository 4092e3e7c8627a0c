"""``eventproc scale``: say how many processes a group needs, once or again and again."""

import asyncio
import json
import time
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from typing import Annotated

import typer

from eventproc._base.http.address import OK as OK_STATUS
from eventproc._base.http.address import UNAVAILABLE, Answer, ListenAddress, parse_address
from eventproc._command.arguments import options
from eventproc._command.arguments.address import HubAddress
from eventproc._command.arguments.grouped import DEFAULTS
from eventproc._command.arguments.scaling import RulesOption
from eventproc._command.group.connection import Connection, connect
from eventproc._command.terminal.ends import until_signal
from eventproc._command.terminal.exits import BAD_INPUT, exit_code_of, print_error
from eventproc._core.scaling.decision import ScalingRules
from eventproc._group.autoscaler import Autoscaler, Vote, read_group
from eventproc.errors import EventProcError


async def scale(
    *,
    address: HubAddress,
    rules: RulesOption,
    expiration: options.Expiration = DEFAULTS.ownership_expiration,
    watch: Annotated[
        bool, typer.Option("--watch", help="Repeat, and print a line at each change.")
    ] = False,
    http: Annotated[
        str,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Serve the newest vote as JSON, for KEDA's metrics-api. PORT alone listens on "
            "127.0.0.1. Needs `pip install 'eventproc[http]'`.",
        ),
    ] = "",
    grpc: Annotated[
        str,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Serve as an external scaler of KEDA. PORT alone listens on 127.0.0.1. Needs "
            "`pip install 'eventproc[keda]'`.",
        ),
    ] = "",
    every: Annotated[
        options.ReadingInterval,
        typer.Option(help="With --watch, --http or --grpc: the time between two readings."),
    ] = timedelta(seconds=10),
) -> None:
    """Say how many processes a group needs, by its backlog and its rates; also to KEDA.

    It reads checkpoints, owners and the hub, and changes nothing. The group may have processors of
    any Azure SDK. Without an answer of store or hub the number stays as it was.

    Without --watch, --http or --grpc it prints one line of JSON, after two readings that are
    --checkpoint-interval apart. With one of them it runs until Ctrl+C or SIGTERM.

    Exit codes: 0 printed, or stopped by a signal, 2 an option is wrong, 3 the store or the hub did
    not answer.
    """
    addresses = {
        option: parse_address(text, option)
        for option, text in (("--http", http), ("--grpc", grpc))
        if text
    }
    serves = watch or bool(addresses)
    async with connect(address, hub_may_be_away=serves) as connection:
        scaler = _scaler(connection, expiration, rules)
        if serves:
            await _serve(scaler, addresses, every)
            return
        await connection.note_absence()
        await scaler.decide()
        await asyncio.sleep(rules.checkpoint_interval.total_seconds())
        _print(await scaler.decide())


def _scaler(connection: Connection, expiration: timedelta, rules: ScalingRules) -> Autoscaler:
    connection.refuse_queues()
    assert connection.source is not None, "the address has a hub"
    read = partial(
        read_group,
        connection.store,
        connection.group,
        connection.source,
        expiration=expiration,
        clock=time.monotonic,
    )
    return Autoscaler(read, rules)


async def _serve(scaler: Autoscaler, addresses: dict[str, ListenAddress], every: timedelta) -> None:
    """Vote, print changes and serve, until SIGINT or SIGTERM."""
    async with AsyncExitStack() as stack:
        if "--http" in addresses:
            from eventproc._base.http.server import serve  # noqa: PLC0415 - an extra

            routes = {"/": partial(_answer, scaler)}
            bound = await stack.enter_async_context(serve(addresses["--http"], routes, "--http"))
            print_error(f"serving JSON on {bound}")
        if "--grpc" in addresses:
            from eventproc._command.keda import serve_keda  # noqa: PLC0415 - an extra

            bound = await stack.enter_async_context(serve_keda(addresses["--grpc"], scaler))
            print_error(f"serving gRPC on {bound}")
        await until_signal(_vote_again_and_again(scaler, every), _print_changes(scaler))


async def _answer(scaler: Autoscaler) -> Answer:
    """Answer with the newest vote; 503 until there is a number to report."""
    vote = scaler.vote
    return Answer(vote.as_json(), UNAVAILABLE if vote.decision.replicas is None else OK_STATUS)


async def _vote_again_and_again(scaler: Autoscaler, every: timedelta) -> None:
    try:
        await scaler.decide()
    except EventProcError as error:
        # What a retry cannot heal ends it now. Later, it is an outage like any other.
        if exit_code_of(error) == BAD_INPUT:
            raise
    else:
        await asyncio.sleep(every.total_seconds())
    await scaler.run(every)


async def _print_changes(scaler: Autoscaler) -> None:
    async for vote in scaler.changes():
        _print(vote)


def _print(vote: Vote) -> None:
    print(json.dumps(vote.as_json()), flush=True)
