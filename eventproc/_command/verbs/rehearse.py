"""``eventproc rehearse``: play the user's handler in simulated groups with drawn faults."""

from collections.abc import Collection
from dataclasses import replace
from typing import Annotated, Any

import typer

from eventproc._command.arguments.config_options import PROCESSOR
from eventproc._command.arguments.grouped import ConfigOptions
from eventproc._command.arguments.modules import import_module
from eventproc._command.terminal.exits import FAILED, OK
from eventproc._delivery.config import EventProcessorConfig, FailureAction
from eventproc.errors import ConfigurationError
from eventproc.testing import BrokenPromise, Clock, Database, Ledger, Promise
from eventproc.testing import rehearse as rehearse_handler
from eventproc.testing._rehearsal.rehearse import numbered_event

REHEARSED = (
    "load_balancing_strategy",
    "ownership_expiration",
    "checkpoint_policy.max_events",
    "checkpoint_policy.interval",
    "batch_size_max",
    "failure_policy.attempts_max",
    "key_concurrency",
)


def rehearse(
    *,
    handler: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:CLASS",
            help="Your handler: shop:Orders is the class Orders in shop.py, in this folder or in "
            "an installed package. A function that makes one will do.",
        ),
    ],
    ledger: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="A function or a client whose calls are effects: shop:charge. It is replaced by a "
            "ledger. Repeat it for more. A NAME alone is an argument of the handler's constructor.",
            show_default=False,
        ),
    ] = None,
    fakes: Annotated[
        str,
        typer.Option(
            metavar="MODULE:NAME",
            help="A list of fakes in Python: databases, clocks, ledgers with arguments such as "
            "idempotent_by.",
        ),
    ] = "",
    promise: Annotated[
        list[Promise] | None,
        typer.Option(
            metavar="|".join(Promise),
            help="What the handler promises, besides that every effect happens at least once. "
            "exactly-once: none twice. in-order: for each key. state: the state, and the rows of "
            "databases, are the fold of the events. Repeat it for more.",
            show_default=False,
        ),
    ] = None,
    events: Annotated[
        str,
        typer.Option(
            metavar="MODULE:NAME",
            help="A function that gets a number and returns the body of an event, or its key and "
            "its body. By default orders in JSON with id, key and amount.",
        ),
    ] = "",
    seeds: Annotated[int, typer.Option(metavar="N", help="The number of rehearsals.", min=1)] = 100,
    seed: Annotated[int, typer.Option(metavar="N", help="The first one.", min=0)] = 0,
    config: Annotated[
        EventProcessorConfig, ConfigOptions({name: PROCESSOR[name] for name in REHEARSED})
    ],
) -> int:
    """Rehearse your handler: crashes, steals, freezes and outages on virtual time, drawn by seed.

    Each rehearsal is a group of simulated processes with real processors, each with your modules
    imported afresh. The first seed that breaks a promise is reduced to few events and faults, and
    printed. Threads, sockets and real clocks are refused; what needs them is declared as a ledger,
    or by --fakes.

    Exit codes: 0 every promise was kept, 1 one was broken, 2 an option is wrong, or the handler
    cannot be rehearsed.
    """
    declared: list[Clock | Database | Ledger] = [Ledger(target) for target in ledger or ()]
    if fakes:
        found = _named(fakes)
        if not (
            isinstance(found, Collection)
            and all(isinstance(f, Clock | Database | Ledger) for f in found)
        ):
            raise ConfigurationError(
                "this is no list of fakes of eventproc.testing, such as [Ledger('shop:charge')]",
                setting="--fakes",
                value=repr(fakes),
            )
        declared += found
    import_module(handler.partition(":")[0])
    policy = replace(config.failure_policy, action=FailureAction.DEAD_LETTER)
    try:
        rehearse_handler(
            handler,
            *declared,
            promises=promise or (),
            events=_named(events) if events else numbered_event,
            config=replace(config, failure_policy=policy),
            seeds=seeds,
            first_seed=seed,
        )
    except BrokenPromise as broken:
        print(broken)
        return FAILED
    kept = ", ".join(dict.fromkeys([Promise.AT_LEAST_ONCE, *(promise or ())]))
    print(f"{seeds} rehearsals of {handler}, every promise kept: {kept}")
    return OK


def _named(place: str) -> Any:  # noqa: ANN401 - whatever it names
    module_name, _, name = place.partition(":")
    found: object = getattr(import_module(module_name), name, None)
    if found is None:
        raise ConfigurationError(f"module {module_name!r} has no {name!r}: give MODULE:NAME")
    return found
