"""Which resources there are: names that are given, or a coroutine that lists them."""

from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import Final
from urllib.parse import quote, unquote

from eventproc._base.logs import error_text
from eventproc._base.settings import PositiveSpan, checked
from eventproc._base.tasks import users_code
from eventproc.errors import ConfigurationError, SourceUnavailableError

ID_CHARACTERS_MAX: Final = 512
"""The longest id of a resource: a blob's name has at most 1,024 characters, group included."""

ListNames = Callable[[], Awaitable[Iterable[str]]]


class Resources:
    """The resources that a group shares: names, or a coroutine function that lists them.

    All processors of a group should find the same ones. If they differ for some time, a resource
    that some do not know of is held by the others.
    """

    __module__ = "eventproc"

    @checked
    def __init__(
        self,
        names: Iterable[str] | ListNames,
        *,
        every: PositiveSpan = timedelta(seconds=30),
    ) -> None:
        """Take names, or a coroutine function that returns them.

        Args:
            names: The names. They may have any characters. Order and repetition do not matter.
            every: The time between two calls, if *names* is a function. A resource that is new is
                taken, and one that is gone is released, in the cycle after the call.

        Raises:
            ConfigurationError: *names* has something that cannot be a name.
        """
        self.every = every
        self._list: ListNames | None = names if callable(names) else None
        self._ids = () if callable(names) else _ids_of(names)

    async def ids(self) -> tuple[str, ...]:
        """Return the ids of the resources that exist now, in order.

        Raises:
            SourceUnavailableError: the function failed.
        """
        if self._list is None:
            return self._ids
        try:
            with users_code():
                return _ids_of(await self._list())
        except Exception as error:
            raise SourceUnavailableError(
                f"listing the resources failed: {error_text(error)}"
            ) from error


def _ids_of(names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise ConfigurationError(f"names is the text {names!r}: give a list of names")
    return tuple(sorted({id_of(name) for name in names}))


def id_of(name: object) -> str:
    """Return the id of a resource in the store: the name, with quoting that any key can hold.

    Raises:
        ConfigurationError: it is no text, empty, or too long.
    """
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"the name of a resource is {name!r}: give a text")
    quoted = quote(name, safe="")
    if quoted.endswith("."):  # Of blobs, "." is a path, and a dot at the end may be dropped.
        quoted = quoted.replace(".", "%2E")
    if len(quoted) > ID_CHARACTERS_MAX:
        raise ConfigurationError(
            f"the name of a resource, {name[:40]!r}..., has {len(quoted)} characters when quoted: "
            f"give at most {ID_CHARACTERS_MAX}"
        )
    return quoted


def name_of(resource_id: str) -> str:
    """Return the name of a resource, from its id in the store."""
    return unquote(resource_id)
