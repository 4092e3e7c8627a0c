"""Checks the arguments of a processor; each error names the remedy.

A handler is checked by its class: whether it can be made without arguments, whether its methods can
be called with the arguments that they will get, whether columns and transactions that it wants are
possible. If a function makes the handlers, the first one that it makes is checked, when the
processor starts.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import FunctionType
from typing import Final

from eventproc._base.tasks import users_code
from eventproc._core.placement.published import Published
from eventproc._delivery.config import EventProcessorConfig, FailureAction, FailurePolicy
from eventproc._delivery.handler import BlockingPartitionHandler, HandlerFactory, PartitionHandler
from eventproc._group.config import GroupConfig
from eventproc._group.resources.handler import (
    BlockingResourceHandler,
    ResourceHandler,
    ResourceHandlerFactory,
)
from eventproc.decoders import Decoder
from eventproc.errors import ConfigurationError, MissingExtraError
from eventproc.ports import (
    CheckpointStore,
    DeadLetterSink,
    EventSource,
    ForwardingStore,
    QueueSource,
    Roster,
)

PROCESS_METHODS: Final = ("process_event", "process_value", "process_events", "process_columns")
"""A handler must define one of these methods."""

_PARAMETERS: Final = {
    "prepare": ("partition_id",),
    "discard": ("partition_id",),
    "initialize": ("context",),
    "process_event": ("context", "event"),
    "process_value": ("context", "value", "event"),
    "process_events": ("context", "events"),
    "process_columns": ("context", "columns"),
    "on_idle": ("context",),
    "process_error": ("context", "error"),
    "close": ("context", "reason"),
}
"""The arguments of each method."""

_KINDS: Final = (PartitionHandler, BlockingPartitionHandler)
_RESOURCE_KINDS: Final = (ResourceHandler, BlockingResourceHandler)
_BLOCKING: Final = (BlockingPartitionHandler, BlockingResourceHandler)
_RESOURCE_PARAMETERS: Final = {
    "prepare": ("name",),
    "discard": ("name",),
    "hold": ("held",),
    "drain": ("held",),
}


def check_member(config: GroupConfig, owner_id: str | None) -> None:
    """Refuse an owner id that cannot be stored, and settings that need one.

    Raises:
        ConfigurationError: the message names the argument and the remedy.
    """
    if owner_id is not None:
        check_owner_id(owner_id)
    elif config.static_membership:
        raise ConfigurationError(
            "give a name that stays the same over restarts, or no processor could take over the "
            "partitions that this one kept",
            setting="static_membership",
            value="set",
            beside={"owner_id": "not given"},
        )


def check_roster(config: GroupConfig, roster: Roster, owner_id: str | None) -> None:
    """Refuse a roster that nobody would read, and one without the name of this processor.

    Raises:
        ConfigurationError: the message names the argument and the remedy.
    """
    placement = config.placement
    if not isinstance(placement, Published):
        raise ConfigurationError(
            "only the leader of a published placement reads a roster, so that all processors have "
            f"the same plan. Use Published({placement.name}), as text Published:{placement.name}",
            setting="roster",
            value="given",
            beside={"placement": placement.name},
        )
    if (owner_id or roster.own_id) is None:
        raise ConfigurationError(
            "give the name that the roster has for this process",
            setting="roster",
            value="given",
            beside={"owner_id": "not given"},
        )


def check_sink(
    config: EventProcessorConfig, sink: DeadLetterSink | None, handler: HandlerFactory
) -> None:
    """Refuse a failure policy that stores dead letters, without a sink or without any to store.

    Raises:
        ConfigurationError: the message names the remedy.
    """
    policy = config.failure_policy
    if policy.action is FailureAction.DEAD_LETTER and sink is None:
        raise ConfigurationError(
            "the failure policy says DEAD_LETTER: give a sink, or choose SKIP or STOP",
            setting="dead_letters",
            value="not given",
        )
    if policy.action is FailureAction.DEAD_LETTER and not may_give_up(policy, handler):
        raise ConfigurationError(
            "the failure policy says DEAD_LETTER, and no event would ever be given up, because the "
            "handler has no decoder and there is no limit: set attempts_max or deliveries_max",
            setting="failure_policy",
        )


def may_give_up(policy: FailurePolicy, handler: HandlerFactory) -> bool:
    """Whether an event may ever be given up: at a limit, or because it cannot be decoded.

    What a function returns is not known yet, and may decode.
    """
    if (policy.attempts_max, policy.deliveries_max) != (None, None):
        return True
    # The attribute of a class may be a property, which only a handler can answer.
    return (
        not isinstance(handler, type) or inspect.getattr_static(handler, "decode", None) is not None
    )


def check_positions(config: EventProcessorConfig, source: EventSource) -> None:
    """Refuse a position to begin at for a source whose service keeps it.

    Raises:
        ConfigurationError: the config has one.
    """
    chosen = [config.initial_position, *config.initial_positions.values()]
    if isinstance(source, QueueSource) and not all(p.is_earliest for p in chosen):
        raise ConfigurationError(
            f"has no meaning with {type(source).__name__}: the broker keeps how far each queue is "
            "done, and begins at the first message that was not acknowledged. Leave out where to "
            "begin, for the group and for single partitions",
            setting="initial_position",
        )


def check_owner_id(name: str) -> None:
    """Refuse an owner id that a store cannot hold."""
    if not name or not name.isprintable() or not name.isascii() or name != name.strip():
        raise ConfigurationError(
            "give printable ASCII characters without surrounding blanks, because a blob keeps it",
            setting="owner_id",
            value=repr(name),
        )


# Handlers.


def check_handler(make: HandlerFactory, *, key_concurrency: int = 1) -> None:
    """Refuse handlers that cannot work, as far as that is known before one is made.

    Args:
        make: A class, or a function that makes a handler.
        key_concurrency: As in the configuration.

    Raises:
        ConfigurationError: the handler cannot work; the message names the method and the remedy.
    """
    made = _check_factory(make)
    if made is not None:
        _check_class(made, key_concurrency)


def check_resource_handler(make: ResourceHandlerFactory) -> None:
    """Refuse handlers of resources that cannot work, as far as that is known before one is made.

    Raises:
        ConfigurationError: the handler cannot work; the message names the method and the remedy.
    """
    made = _check_factory(make)
    if made is None:
        return
    base = _base_of(made, _RESOURCE_KINDS)
    if not _is_own(made, base, "hold"):
        raise ConfigurationError(f"handler {_name(made)} holds nothing: define hold")
    _check_methods(made, base, _RESOURCE_PARAMETERS)


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


def _check_factory(make: Callable[[], object]) -> type | None:
    """Refuse what needs arguments; return the class if it is one."""
    made = class_of(make)
    try:
        inspect.signature(make).bind()
    except TypeError as error:
        name = _name(made or make)
        raise ConfigurationError(
            f"handler {name} cannot be made without arguments ({error}): define a function "
            f"that makes one, `def make(): return {name}(...)`, and give that"
        ) from None
    except ValueError:  # Its signature is not known.
        pass
    return made


def _base_of(cls: type, kinds: tuple[type, type]) -> type:
    """Return which of the two base classes it inherits from."""
    for kind in kinds:
        if issubclass(cls, kind):
            return kind
    raise ConfigurationError(
        f"{_name(cls)} is not a handler: let it inherit from {kinds[0].__name__} or "
        f"{kinds[1].__name__}"
    )


def first_checked(
    make: HandlerFactory,
    *,
    key_concurrency: int,
    check: Callable[[type], object] = lambda _: None,
) -> HandlerFactory:
    """Check the first handler that a function makes; do nothing if *make* is a class.

    Returns a function that returns that first handler, and then makes others as *make* does.

    Args:
        make: Makes a handler.
        key_concurrency: As in the configuration.
        check: A further check of its class.

    Raises:
        ConfigurationError: the handler cannot work; the message names the method and the remedy.
    """
    if class_of(make) is not None:
        return make
    try:
        with users_code():
            handler = make()
    except Exception:  # noqa: BLE001 - the user's code: called again by the pump, which reports it
        return make
    check_made(handler, key_concurrency=key_concurrency)
    check(type(handler))
    made = [handler]
    return lambda: made.pop() if made else make()


def check_made(handler: object, *, key_concurrency: int = 1) -> None:
    """Refuse a handler that cannot work.

    Raises:
        ConfigurationError: the message names the method and the remedy.
    """
    _check_class(type(handler), key_concurrency)


def class_of(make: Callable[[], object]) -> type | None:
    """Return the class if *make* is one, also with arguments bound to it."""
    while isinstance(make, partial):
        make = make.func
    return make if isinstance(make, type) else None


def _check_class(cls: type, key_concurrency: int) -> None:
    base = _base_of(cls, _KINDS)
    if not any(_is_own(cls, base, name) for name in PROCESS_METHODS):
        raise ConfigurationError(
            f"handler {_name(cls)} handles nothing: define {' or '.join(PROCESS_METHODS)}"
        )
    _check_methods(cls, base, _PARAMETERS)
    _check_values(cls, base)
    _check_columns(cls, base, key_concurrency)


def _check_values(cls: type, base: type) -> None:
    """Check that ``process_value`` is called, and that it gets a value."""
    if not _is_own(cls, base, "process_value"):
        return
    for other in ("process_event", "process_events"):
        if _is_own(cls, base, other):
            raise ConfigurationError(
                f"{_name(cls)} defines process_value and {other}, which would be called instead of "
                "it: define one of them"
            )
    decoder = inspect.getattr_static(cls, "decode", None)
    if not isinstance(decoder, Decoder | property):
        raise ConfigurationError(
            f"{_name(cls)} defines process_value, and its decode is {decoder!r}: set it to a "
            "decoder, for example decode = JsonDecoder(Order) of eventproc.decoders"
        )


def _check_columns(cls: type, base: type, key_concurrency: int) -> None:
    """Check what a handler of columns needs, and that no other handler names columns."""
    is_own = partial(_is_own, cls, base)
    name = cls.__name__
    chosen = inspect.getattr_static(cls, "columns", None)
    if not is_own("process_columns"):
        if is_own("columns"):
            raise ConfigurationError(
                f"{name}.columns has no effect, because there is no process_columns: define it, or "
                "give the attribute another name"
            )
        return
    if is_own("process_event") or is_own("process_events") or is_own("process_value"):
        return  # Then a processor calls these; ``process_columns`` is for Spark's sink.
    if key_concurrency > 1:
        raise ConfigurationError(
            f"{name} takes columns, and a batch of columns has events of many keys. Define "
            "process_events instead, or handle one key at a time",
            setting="key_concurrency",
            value=str(key_concurrency),
        )
    if isinstance(chosen, property):
        return
    if isinstance(chosen, str) or not isinstance(chosen, Sequence) or not chosen:
        raise ConfigurationError(
            f'{name}.columns is {chosen!r}: give the names of columns, such as ("body", "offset")'
        )
    with _of_handler(name):
        from eventproc.columns._schema import check_names  # noqa: PLC0415 - an extra
        from eventproc.columns._value_column import VALUE, value_type  # noqa: PLC0415 - an extra

        if VALUE in chosen:
            shape = getattr(getattr(cls, "decode", None), "shape", None)
            if shape is None:
                raise ConfigurationError(
                    f"the column {VALUE!r} needs a decoder that knows the type of its values: set "
                    "decode, for example to JsonDecoder(Order)"
                )
            value_type(shape)
        check_names(name for name in chosen if name != VALUE)


@contextmanager
def _of_handler(name: str) -> Iterator[None]:
    """Say of which handler a refusal is."""
    try:
        yield
    except MissingExtraError:
        raise
    except ConfigurationError as error:
        raise ConfigurationError(f"{name}.columns: {error}") from None


def _check_methods(cls: type, base: type, parameters: Mapping[str, tuple[str, ...]]) -> None:
    """Check those of these methods that the class defines."""
    for name, given in parameters.items():
        method = inspect.getattr_static(cls, name, None) if _is_own(cls, base, name) else None
        if isinstance(method, FunctionType):
            _check_is_coroutine_function(cls, base, name, method)
            _check_parameters(cls, name, method, given)


def _is_own(cls: type, base: type, name: str) -> bool:
    return getattr(cls, name, None) is not getattr(base, name, None)


def _check_is_coroutine_function(cls: type, base: type, name: str, method: FunctionType) -> None:
    """A blocking handler needs ordinary functions, the other one coroutine functions."""
    if inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
        raise ConfigurationError(
            f"{_name(cls)}.{name} contains a yield, so calling it does nothing: remove the yield"
        )
    is_awaitable = inspect.iscoroutinefunction(method)
    other = base.__name__.removeprefix("Blocking")
    if base in _BLOCKING:
        if is_awaitable:
            raise ConfigurationError(
                f"{_name(cls)}.{name} is `async def`, and nothing awaits it in a {base.__name__}: "
                f"write `def`, or inherit from {other}"
            )
        return
    # A decorator may return an ordinary function that returns the coroutine of the inner one.
    if not (is_awaitable or inspect.iscoroutinefunction(inspect.unwrap(method))):
        raise ConfigurationError(
            f"{_name(cls)}.{name} is `def`, and a {base.__name__} is awaited: write `async def`, "
            f"or inherit from Blocking{base.__name__}"
        )


def _check_parameters(cls: type, name: str, method: FunctionType, given: tuple[str, ...]) -> None:
    try:
        inspect.signature(method).bind("self", *given)
    except TypeError as error:
        raise ConfigurationError(
            f"{_name(cls)}.{name} cannot be called with ({', '.join(given)}), as it will be "
            f"({error}): write {name}(self, {', '.join(given)})"
        ) from None


def _name(thing: object) -> str:
    return getattr(thing, "__name__", None) or repr(thing)
