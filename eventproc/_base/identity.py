"""Token credentials of Azure for any number of event loops, and the one of a process.

The store has a thread and an event loop of its own, but asynchronous credentials of
``azure.identity.aio`` work only on the loop on which they were opened. So a blocking credential is
called in a thread, and an asynchronous one on its own loop. A token is renewed some minutes before
it expires. If that takes long or fails, the former token is used while it is valid, so neither a
blocked event loop nor a short outage of Entra ID stops the store.
"""

import asyncio
import inspect
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final, Protocol, TypeVar, cast, runtime_checkable
from weakref import WeakKeyDictionary

from eventproc._base.extras import needing
from eventproc._base.network import HttpProxy

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


@runtime_checkable
class BlockingTokenCredential(Protocol):
    """A credential of ``azure.identity``."""

    def get_token(self, *scopes: str, **options: Any) -> Any:  # noqa: ANN401 - a token
        """Return a token; blocks."""


@runtime_checkable
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
        self, kept: _Kept, scopes: tuple[str, ...], options: Mapping[str, Any]
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


def shared(credential: T) -> T | SharedCredential:
    """Return a token credential as a shared one; a key or a signature as it is."""
    if isinstance(credential, SharedCredential) or not hasattr(credential, "get_token"):
        return credential
    return SharedCredential(cast("AnyTokenCredential", credential))


@dataclass(frozen=True, kw_only=True)
class Network:
    """Certificates and proxy of every connection to Azure."""

    ca_bundle: str | None = None
    """A file with the certificates to trust; by default those of ``certifi``."""

    proxy: HttpProxy | None = None

    def credential(self) -> SharedCredential:
        """Return the identity of this process, the same one for hub and storage account.

        Raises:
            MissingExtraError: azure-identity is not installed.
        """
        return _credential(self)


DIRECT: Final = Network()
"""The default certificates, and the proxy of the environment variables, if any."""


@cache
def _credential(network: Network) -> SharedCredential:
    """Return the first credential that is set up; no token is requested yet.

    It is one of environment variables, workload identity, managed identity, the Azure CLI, other
    developer tools. ``AZURE_CLIENT_ID`` chooses among several managed identities.
    """
    with needing("identity"):
        from azure.identity import DefaultAzureCredential  # noqa: PLC0415 - it is an extra

    # If logging is not set up, azure-identity prints a dozen lines before our one-line error.
    logging.getLogger("azure.identity").addHandler(logging.NullHandler())
    settings: dict[str, Any] = {}
    if network.ca_bundle is not None:
        settings["connection_verify"] = network.ca_bundle
    if network.proxy is not None:
        settings["proxies"] = {"https": network.proxy.url_with_user}
    return SharedCredential(DefaultAzureCredential(**settings))


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


REMEDY: Final = (
    "In Azure, give the machine or the pod a managed identity or a workload identity; on your own "
    "machine, sign in with `az login`"
)

REASON_MAX: Final = 300
"""Most characters of a credential's own reason."""

_ATTEMPT: Final = re.compile(r"^\s*(\w+Credential): (.*)$", re.MULTILINE)
_NOT_SET_UP: Final = re.compile(
    r"unavailable|not (?:fully )?configured|not found|could not be found|not installed"
    r"|No accounts|requires the .* package|Please run 'az login'|unexpected content type"
    r"|no response from the IMDS|No managed identity endpoint",
    re.IGNORECASE,
)
"""Matches the failure of a credential that is not set up on this machine."""

_REQUESTED: Final = re.compile(r"AADSTS\d|request error|authentication failed", re.IGNORECASE)
"""Matches the failure of a credential that is set up, but whose request for a token failed."""


def no_token_reason(error: BaseException) -> str:
    """Return why a credential gave no token, with the remedy, in one line.

    ``DefaultAzureCredential`` tries one credential after another, and reports all failures in over
    a dozen lines. Most only mean that a credential is not set up; this leaves those out.
    """
    text = str(error) or type(error).__name__
    attempts = _ATTEMPT.findall(text)
    if len(attempts) > 1:
        failed = [
            f"{name} failed: {_short(reason)}"
            for name, reason in attempts
            if _REQUESTED.search(reason) or not _NOT_SET_UP.search(reason)
        ]
        if not failed:
            return f"no credential was found. {REMEDY}"
        return f"no credential gave a token. {'; '.join(failed)}"
    return f"the credential gave no token: {_short(text)}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= REASON_MAX else f"{line[: REASON_MAX - 3]}..."
