"""Requests of a store to a service: limited in number, repeated if there is no answer, logged."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from checkpointstores.reachability import Reachability
from checkpointstores.retry import retried
from eventproc.errors import StoreError, StoreRejectedError
from eventproc.logs import Logger

ServiceT = TypeVar("ServiceT")
T = TypeVar("T")


class ConditionFailedError(Exception):
    """The record was changed, created or deleted since the caller read it.

    Never leaves the store, which turns it into ``WriteOutcome.WON`` if the record has the caller's
    own write, and into ``LOST`` otherwise.
    """

    def __init__(self, *, was_repeated: bool = False) -> None:
        super().__init__("the record changed since it was read")
        self.was_repeated = was_repeated
        """Whether the HTTP client sent the request more than once."""


@dataclass(frozen=True, slots=True)
class _Opened(Generic[ServiceT]):
    """The service, and its free request slots, while the store is open."""

    service: ServiceT
    slots: asyncio.Semaphore


class Requests(Generic[ServiceT]):
    """Makes requests to a service, such as a table, while it is attached."""

    def __init__(self, log: Logger, *, write_right: str, concurrency_max: int) -> None:
        """*log* has the store as a bound field; *write_right* is the right to write records."""
        self._log = log
        self._write_right = write_right
        self._concurrency_max = concurrency_max
        self._reachability = Reachability(log)
        self._opened: _Opened[ServiceT] | None = None
        self._has_written = False

    def _attach(self, service: ServiceT) -> None:
        """Use this service from now on."""
        self._opened = _Opened(service, asyncio.Semaphore(self._concurrency_max))

    def _detach(self) -> None:
        """Stop using the service."""
        self._opened = None

    async def _ask(self, right: str, call: Callable[[ServiceT], Awaitable[T]]) -> T:
        """Make a request that needs *right*, up to ``ATTEMPTS`` times if it is not answered."""
        if self._opened is None:
            raise RuntimeError("the store is not open: use `async with store` or `await open()`")
        service, is_write = self._opened.service, right == self._write_right
        try:
            async with self._opened.slots:
                answer = await retried(lambda: call(service))
        except ConditionFailedError:
            self._reachability.answered(right)
            raise
        except StoreRejectedError as error:
            # The caller of the first write raises this error, so it is not logged here.
            if not is_write or self._has_written:
                self._reachability.refused(right, error)
            raise
        except StoreError as error:
            self._reachability.failed(error)
            raise
        self._reachability.answered(right)
        self._has_written |= is_write
        return answer
