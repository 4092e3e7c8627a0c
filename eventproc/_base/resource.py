"""A base class of objects that an ``async with`` block opens and closes."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from functools import wraps
from inspect import iscoroutinefunction
from types import TracebackType
from typing import Any, Final, Self
from weakref import ReferenceType, ref

from eventproc.errors import ConfigurationError


def require_process(what: object, process_id: int | None) -> None:
    """Refuse an object that was opened in another process than this one.

    Raises:
        ConfigurationError: its threads and connections stayed in the process *process_id*.
    """
    if process_id is not None and process_id != os.getpid():
        raise ConfigurationError(
            f"{what} was opened in process {process_id} and is used in process {os.getpid()}: "
            "its threads and connections do not survive a fork. Build and start it in the process "
            "that uses it, after the fork"
        )


class AsyncResource(ABC):
    """Base of classes with ``open`` and ``close``; an ``async with`` block calls both.

    While it is open, its public coroutines can be called only in the process that opened it. In
    another one they would wait for threads that do not exist there, or write to the connections of
    the first.
    """

    _opened_in: int | None = None
    """The id of the process that opened it; ``None`` while it is closed."""

    _user: ReferenceType[object] | None = None
    """What uses it alone. Weak, so that one that ended without closing keeps it from nobody."""

    def __init_subclass__(cls, **options: Any) -> None:  # noqa: ANN401 - of any base class
        # Public coroutines refuse calls in another process.
        super().__init_subclass__(**options)
        for name, method in list(vars(cls).items()):
            if iscoroutinefunction(method) and not name.startswith("_"):
                bound = _BOUND_TO_PROCESS.get(name, _in_own_process)
                setattr(cls, name, bound(method))

    @abstractmethod
    async def open(self) -> None:
        """Open."""

    @abstractmethod
    async def close(self) -> None:
        """Close."""

    def reserve(self, user: object) -> None:
        """Reserve it for *user*, which opens it, until ``give_back``.

        Raises:
            ConfigurationError: another one uses it, or it is open in another process.
        """
        require_process(self, self._opened_in)
        other = None if self._user is None else self._user()
        if other is not None and other is not user:
            raise ConfigurationError(
                f"{self!r} is used by another processor, which would close it for both: give each "
                f"processor a {type(self).__name__} of its own, built with the same arguments"
            )
        self._user = ref(user)

    def give_back(self) -> None:
        """Let others use it."""
        self._user = None

    async def open_for(self, user: object) -> None:
        """Reserve and open it; ``close_for_others`` undoes both.

        Raises:
            ConfigurationError: another one uses it.
        """
        self.reserve(user)
        try:
            await self.open()
        except BaseException:
            self.give_back()
            raise

    async def close_for_others(self) -> None:
        """Close it, and let others use it."""
        try:
            await self.close()
        finally:
            self.give_back()

    async def __aenter__(self) -> Self:
        """Open."""
        await self.open()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()


_Method = Callable[..., Coroutine[Any, Any, Any]]


def _in_own_process(method: _Method) -> _Method:
    @wraps(method)
    def call(self: AsyncResource, *args: Any, **options: Any) -> Coroutine[Any, Any, Any]:  # noqa: ANN401
        require_process(self, self._opened_in)
        return method(self, *args, **options)

    return call


def _opening(method: _Method) -> _Method:
    @wraps(method)
    async def open_here(self: AsyncResource) -> None:
        require_process(self, self._opened_in)
        await method(self)
        self._opened_in = os.getpid()

    return open_here


def _closing(method: _Method) -> _Method:
    @wraps(method)
    async def close_here(self: AsyncResource) -> None:
        require_process(self, self._opened_in)
        try:
            await method(self)
        finally:
            self._opened_in = None

    return close_here


_BOUND_TO_PROCESS: Final = {"open": _opening, "close": _closing}
