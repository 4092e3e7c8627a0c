"""An HTTP proxy, and why a connection could not be made, in words that name the remedy.

TLS, proxies and WebSockets fail in the same ways for every service.
"""

import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import ip_address
from typing import Annotated, Final, Self
from urllib.parse import quote, unquote, urlsplit

from eventproc._base.settings import SECRET, Within, check_settings, checked
from eventproc.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpProxy:
    """An HTTP proxy between this process and a service."""

    __module__ = "eventproc"

    host: str
    port: Annotated[int, Within(least=1, most=65535)]
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check the values; a ``ConfigurationError`` says how to correct them."""
        check_settings(self)

    @classmethod
    @checked
    def from_url(cls, url: Annotated[str, SECRET]) -> Self:
        """Parse ``http://[USER:PASSWORD@]HOST:PORT``; ``%40`` stands for ``@`` in user or password.

        Raises:
            ConfigurationError: it has another form; the message does not repeat the password.
        """
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = None
        is_plain = parts.scheme == "http" and not parts.path.strip("/") and not parts.query
        if not parts.hostname or not port or not is_plain:
            raise ConfigurationError(
                "give http://HOST:PORT, or http://USER:PASSWORD@HOST:PORT if the proxy asks for a "
                "user",
                setting="http_proxy",
            )
        return cls(
            host=parts.hostname,
            port=port,
            username=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
        )

    @property
    def url(self) -> str:
        """The address as a URL, without the user."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def url_with_user(self) -> str:
        """The address as a URL, with user and password: a secret."""
        if not self.username:
            return self.url
        user = f"{quote(self.username, safe='')}:{quote(self.password or '', safe='')}"
        return self.url.replace("//", f"//{user}@", 1)


_PROXY_REFUSED: Final = "ClientHttpProxyError"
_PROXY_AWAY: Final = "ClientProxyConnectionError"
_NO_WEBSOCKET: Final = "WSServerHandshakeError"
"""Classes of aiohttp, by name: it is an extra, and only its adapters import it."""

_REQUEST_ID: Final = "x-ms-request-id"
"""A header that Azure Storage and Azurite give to each answer of theirs."""


class ForeignAnswerError(ConnectionError):
    """A gateway or a proxy answered a request, and not the storage service.

    Its status says nothing about the record: the outcome is as unknown as without an answer.
    """


def require_own_answer(status: int, headers: Mapping[str, str]) -> None:
    """Refuse an answer that is not the storage service's, by the headers of the answer.

    Raises:
        ForeignAnswerError: It has no request id.
    """
    if _REQUEST_ID not in headers:
        raise ForeignAnswerError(
            f"something else answered (status {status}, without {_REQUEST_ID}): is this the "
            "storage account's address? Check the gateways and proxies on the way to it"
        )


@dataclass(frozen=True, slots=True)
class ConnectionFailure:
    """Why a connection failed."""

    reason: str
    is_setting: bool
    """Whether a setting is wrong, so that another attempt fails in the same way."""


def failure_of(error: BaseException) -> ConnectionFailure | None:
    """Return what an exception, or one of its causes, says about TLS, proxy or WebSocket.

    ``None`` if it is about something else.
    """
    for cause in causes(error):
        if isinstance(cause, ssl.SSLError):
            return _no_tls(cause)
        name = type(cause).__name__
        if isinstance(cause, ForeignAnswerError):
            return ConnectionFailure(str(cause), is_setting=False)
        if name == _PROXY_REFUSED:
            return _refused_by_proxy(cause)
        if name == _PROXY_AWAY:
            return ConnectionFailure(
                f"the HTTP proxy {_place(cause)} cannot be reached ({_system_reason(cause)})",
                is_setting=False,
            )
        if name == _NO_WEBSOCKET:
            status = int(getattr(cause, "status", 0))
            return ConnectionFailure(
                f"the server does not open a WebSocket (status {status})",
                is_setting=HTTPStatus(400) <= status < HTTPStatus(500),
            )
    return None


def _no_tls(error: ssl.SSLError) -> ConnectionFailure:
    if isinstance(error, ssl.SSLCertVerificationError):
        found = getattr(error, "certificate_error", error)  # aiohttp's error has one inside
        return ConnectionFailure(
            "the server's certificate is not trusted "
            f"({getattr(found, 'verify_message', found)}). If a CA of your own signed it, give "
            "the CA's certificates as ca_bundle (--ca-bundle)",
            is_setting=True,
        )
    reason = (error.reason or type(error).__name__).lower().replace("_", " ")
    return ConnectionFailure(
        f"no TLS connection could be made ({reason}); is this the port of a server that uses TLS?",
        is_setting=False,
    )


def _refused_by_proxy(error: BaseException) -> ConnectionFailure:
    status = int(getattr(error, "status", 0))
    reason = f"the HTTP proxy refuses the connection (status {status})"
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        reason += "; it wants user and password: give http://USER:PASSWORD@HOST:PORT"
    elif status == HTTPStatus.FORBIDDEN:
        reason += "; does it allow this host and port?"
    is_setting = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
    return ConnectionFailure(reason, is_setting=is_setting)


def _system_reason(error: BaseException) -> str:
    failed = getattr(error, "os_error", None)
    if isinstance(failed, socket.gaierror):
        return str(failed.strerror)
    if isinstance(failed, OSError) and failed.errno:
        return os.strerror(failed.errno).lower()
    return type(failed or error).__name__


def _place(error: BaseException) -> str:
    return f"{getattr(error, 'host', '?')}:{getattr(error, 'port', '?')}"


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and what caused it."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def is_ip_address(host: str) -> bool:
    """Whether a host is given by its address, which no DNS has to find."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
