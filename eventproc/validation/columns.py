"""Checks what a handler that takes columns needs; each error names the remedy."""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from eventproc.errors import ConfigurationError
from eventproc.extras import MissingExtraError


def check_columns(cls: type, base: type, key_concurrency: int) -> None:
    """Check what a handler of columns needs, and that no other handler names columns.

    Args:
        cls: The handler's class.
        base: Which of the two base classes it inherits from.
        key_concurrency: As in the configuration.

    Raises:
        ConfigurationError: the message names the handler and the remedy.
    """

    def is_own(attribute: str) -> bool:
        return getattr(cls, attribute) is not getattr(base, attribute)

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
        from eventproc.columns import VALUE, check_names, value_type  # noqa: PLC0415 - an extra

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
