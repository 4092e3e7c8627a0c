"""What a server gets and gives as plain values: its address, requests and answers.

So the code that answers can be tested without a server.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from eventproc.errors import ConfigurationError

LOOPBACK: Final = "127.0.0.1"
PORT_MAX: Final = 65_535
UNIX: Final = "unix:"
OK: Final = 200
UNAVAILABLE: Final = 503


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """A host and a port, or the path of a Unix socket."""

    host: str = LOOPBACK
    port: int = 0
    """With 0 the operating system chooses a free port."""

    path: str = ""
    """The path of a Unix socket; if it is set, host and port are ignored."""

    def __str__(self) -> str:
        """Return the form that ``parse_address`` reads; an IPv6 address is in brackets."""
        if self.path:
            return f"{UNIX}{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, name: str) -> ListenAddress:
    """Parse ``HOST:PORT``, ``:PORT``, ``PORT`` or ``unix:PATH``.

    Without a host the server listens on the loopback address. Port 0 stands for any free port.

    Args:
        text: The address. An IPv6 address is in brackets.
        name: The option or setting, for the message.

    Raises:
        ConfigurationError: the text has another form.
    """
    if text.startswith(UNIX) and len(text) > len(UNIX):
        return ListenAddress(path=text.removeprefix(UNIX))
    host, _, port = text.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if is_bracketed else host
    is_port = port.isascii() and port.isdecimal() and int(port) <= PORT_MAX
    if not is_port or (":" in host and not is_bracketed) or (is_bracketed and not host):
        raise ConfigurationError(
            "give PORT for this machine alone, such as 8080, or HOST:PORT, such as 0.0.0.0:8080 "
            f"for all; a port is at most {PORT_MAX}",
            setting=name,
            value=repr(text),
        )
    return ListenAddress(host or LOOPBACK, int(port))


Body: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request of a client."""

    method: str
    path: str
    """The path without the query, percent-decoded."""

    headers: Mapping[str, str]
    """The headers by name; look-ups ignore case."""

    body: bytes = b""
    local_host: str = ""
    """The address of this machine at which the connection arrived."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status of HTTP, and a body: JSON, or text or bytes with their type."""

    body: Body | str | bytes | AsyncIterator[bytes] = b""
    """The pieces of an iterator are sent one by one until it ends; it is cancelled when the client
    closes the connection."""

    status: int = OK
    content_type: str = "text/plain"
    """The content type, if the body is not JSON."""

    headers: Mapping[str, str] = field(default_factory=dict)


Respond: TypeAlias = Callable[[Request], Awaitable[Answer]]

Route: TypeAlias = Callable[[], Awaitable[Answer]]
"""Returns the answer to requests of one path."""

Routes: TypeAlias = Mapping[str, Route]


def verdict(entries: Iterable[Body]) -> Answer:
    """Return one answer for these processors: 200 if each entry's ``ok`` is true, else 503."""
    processors = list(entries)
    is_ok = all(each["ok"] for each in processors)
    return Answer({"ok": is_ok, "processors": processors}, OK if is_ok else UNAVAILABLE)
