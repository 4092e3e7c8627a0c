"""Makes a token credential usable on every event loop, and keeps its tokens.

The store has a thread and an event loop of its own, but asynchronous credentials of
``azure.identity.aio`` work only on the loop on which they were opened. So a blocking credential is
called in a thread, and an asynchronous one on its own loop. A token is renewed some minutes before
it expires. If that takes long or fails, the former token is used while it is valid, so neither a
blocked event loop nor a short outage of Entra ID stops the store.
"""

import asyncio
import inspect
import os
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary

from eventproc.identity.reasons import no_token_reason

RENEWAL_S: Final = 300.0
"""A token is renewed this long before it expires, or after half of its lifetime if that is
later."""

RENEWAL_WAIT_S: Final = 2.0
"""How long to wait for a new token while the former one is valid."""

GIVEN_UP_S: Final = 60.0
"""A renewal without an answer for so long counts as lost, and another one is begun. Otherwise a
call of the credential that never returns would be waited for until the process ends."""

FIRST_GIVEN_UP_S: Final = 900.0
"""The same for a first token, which a person may have to sign in for."""

RETRY_S: Final = 30.0
"""Time between a renewal that failed and the next, while the former token is valid."""


class Token(Protocol):
    """An access token, as ``azure.core.credentials`` has it."""

    @property
    def token(self) -> str:
        """The text that is sent to the service."""

    @property
    def expires_on(self) -> int:
        """When it expires, in seconds since the epoch."""


class BlockingTokenCredential(Protocol):
    """A credential of ``azure.identity``."""

    def get_token(self, *scopes: str, **options: Any) -> Any:  # noqa: ANN401 - a token
        """Return a token; blocks."""


class AsyncTokenCredential(Protocol):
    """A credential of ``azure.identity.aio``."""

    def get_token(self, *scopes: str, **options: Any) -> Coroutine[Any, Any, Any]:  # noqa: ANN401
        """Return a token."""


AnyTokenCredential = BlockingTokenCredential | AsyncTokenCredential

T = TypeVar("T")


class NoTokenError(Exception):
    """A credential gave no token; the message says why, and the remedy.

    Never leaves an adapter, which turns it into an error of its port.
    """


class SharedCredential:
    """A token credential for any number of event loops and threads."""

    def __init__(
        self, credential: AnyTokenCredential, *, clock: Callable[[], float] = time.time
    ) -> None:
        """Use the credential, which is not closed.

        Args:
            credential: One of ``azure.identity`` or ``azure.identity.aio``, or any other with
                ``get_token``. An asynchronous one is called on the event loop that runs now, or, if
                none runs, on the first that needs a token.
            clock: Returns seconds since the epoch.
        """
        self._credential = credential
        self._is_async = inspect.iscoroutinefunction(credential.get_token)
        self._clock = clock
        self._kept_by_scopes: dict[object, _Kept] = {}
        # Reentrant: if a request is done at once, its callback runs in the thread that holds the
        # lock.
        self._lock = threading.RLock()
        if self._is_async:
            with suppress(RuntimeError):  # no event loop runs yet
                _home_of(credential, asyncio.get_running_loop())

    async def get_token(self, *scopes: str, **options: Any) -> Token:  # noqa: ANN401 - Azure's
        """Return a valid token for the scopes.

        Args:
            scopes: What the token is for.
            options: Those of Azure's clients. With ``claims`` the service has refused the former
                token, so that a new one is requested.

        Raises:
            NoTokenError: The credential gives none.
        """
        key = (scopes, *sorted((n, v) for n, v in options.items() if n != "claims"))
        with self._lock:
            kept = self._kept_by_scopes.setdefault(key, _Kept())
            if options.get("claims"):
                kept.token = None
            now, former = self._clock(), kept.token
            if former is not None and now < min(kept.renew_at, former.expires_on):
                return former
            request = kept.request
            if request is None or now - kept.requested_at >= kept.given_up_s:
                request = self._request(kept, scopes, options)
        if former is None or now >= former.expires_on:
            return await _answer_to(request)
        try:
            async with asyncio.timeout(max(0.0, kept.requested_at + RENEWAL_WAIT_S - now)):
                return await _answer_to(request)
        except (TimeoutError, NoTokenError):
            return former

    def _request(
        self, kept: "_Kept", scopes: tuple[str, ...], options: Mapping[str, Any]
    ) -> "Future[Token]":
        """Begin a request; its callback stores the token."""

        def keep(answered: "Future[Token]") -> None:
            now = self._clock()
            with self._lock:
                if kept.request is not answered:
                    return  # It was given up.
                kept.request = None
                if answered.cancelled() or answered.exception() is not None:
                    kept.renew_at = now + RETRY_S
                    return
                kept.token = token = answered.result()
                left_s = token.expires_on - now
                kept.renew_at = token.expires_on - min(RENEWAL_S, left_s / 2)

        ask: Callable[[], Any] = partial(self._credential.get_token, *scopes, **options)
        if self._is_async:
            home = _home_of(self._credential, asyncio.get_running_loop())
            request: Future[Token] = asyncio.run_coroutine_threadsafe(ask(), home)
        else:
            request = _in_thread(ask)
        kept.request, kept.requested_at = request, self._clock()
        request.add_done_callback(keep)
        return request


@dataclass(slots=True)
class _Kept:
    """The newest token for some scopes, and the request for the next one."""

    token: Token | None = None
    renew_at: float = 0.0
    request: "Future[Token] | None" = None
    requested_at: float = 0.0

    @property
    def given_up_s(self) -> float:
        """How long the request may take."""
        return FIRST_GIVEN_UP_S if self.token is None else GIVEN_UP_S


async def _answer_to(request: "Future[Token]") -> Token:
    """Wait for a request that others may wait for, too."""
    try:
        # Shielded: a cancelled caller must not cancel the request.
        return await asyncio.shield(asyncio.wrap_future(request))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if not request.cancelled() or task is None or task.cancelling():
            raise
        raise NoTokenError("the credential's event loop has ended") from None
    except Exception as error:
        raise NoTokenError(no_token_reason(error)) from error


_homes: WeakKeyDictionary[object, asyncio.AbstractEventLoop] = WeakKeyDictionary()
"""The event loop on which each asynchronous credential is called."""

_homes_lock = threading.Lock()

# A child of a fork has none of the loops of its parent, though they look as if they ran.
os.register_at_fork(after_in_child=_homes.clear)


def _home_of(credential: object, here: asyncio.AbstractEventLoop) -> asyncio.AbstractEventLoop:
    """Return the loop of an asynchronous credential: *here*, unless it has one that still runs."""
    with _homes_lock:
        home = _homes.get(credential)
        if home is None or not home.is_running():
            _homes[credential] = home = here
        return home


def _in_thread(ask: Callable[[], Token]) -> "Future[Token]":
    """Call a function in a thread that does not keep the process alive."""
    request: Future[Token] = Future()

    def answer() -> None:
        try:
            request.set_result(ask())
        except BaseException as error:  # noqa: BLE001 - the waiting caller raises it
            request.set_exception(error)

    threading.Thread(target=answer, name="eventproc-token", daemon=True).start()
    return request


def shared(credential: T) -> T | SharedCredential:
    """Return a token credential as a shared one; a key or a signature as it is."""
    if isinstance(credential, SharedCredential) or not hasattr(credential, "get_token"):
        return credential
    return SharedCredential(cast("AnyTokenCredential", credential))
