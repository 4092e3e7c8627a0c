"""The address of a stream, and the names under which its consumer groups keep their records."""

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote

from eventproc.errors import ConfigurationError

SCHEME: Final = "rabbitmq-stream"
TLS_SCHEME: Final = "rabbitmq-stream+tls"
PORT: Final = 5552
TLS_PORT: Final = 5551
USER: Final = "guest"
"""User name and password that RabbitMQ has for programs on its own machine."""

FORM: Final = "rabbitmq-stream://USER:PASSWORD@HOST:5552/VIRTUAL_HOST"

_SERVER: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:,/@\[\]]+)(:(?P<port>\d{1,5}))?")
_UNQUOTED: Final = frozenset("?#")
_STREAM_MAX: Final = 255
_PORT_MAX: Final = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAddress:
    """Servers, credential and stream. Its ``repr`` contains no secret."""

    servers: tuple[tuple[str, int], ...]
    """Host and port of one node or several."""

    stream: str
    virtual_host: str
    namespace: str
    """The first part of every record's key."""

    is_tls: bool = False
    username: str = field(default=USER, repr=False)
    password: str = field(default=USER, repr=False)

    @property
    def shown(self) -> str:
        """The servers, for messages."""
        return ",".join(f"{host}:{port}" for host, port in self.servers)


def address_of(url: str, stream: str, namespace: str | None) -> StreamAddress:
    """Parse the URL, and choose the namespace under which records are kept.

    Args:
        url: see ``FORM``; several servers are separated by commas.
        stream: the name of a super stream, or of a single stream.
        namespace: a name for the broker; required if there are several servers.

    Raises:
        ConfigurationError: a name is not valid, or the namespace is missing; the message contains
            no password.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in {SCHEME, TLS_SCHEME}:
        shown = f"{scheme}://" if separator else "no URL"
        raise ConfigurationError(
            f"the address of RabbitMQ streams begins with {SCHEME}:// or {TLS_SCHEME}://, not "
            f"with {shown}; its form is {FORM}"
        )
    if not stream or len(stream.encode()) > _STREAM_MAX:
        raise ConfigurationError(
            f"stream is {stream[:60]!r}: give a name of 1 to {_STREAM_MAX} bytes"
        )
    location, _, path = rest.partition("/")
    if not _UNQUOTED.isdisjoint(rest) or "@" in path:
        raise ConfigurationError(
            "a question mark, #, or / in user name and password, and @ in the virtual host, are "
            f"quoted by a percent sign and two digits, such as %2F for /. The form is {FORM}"
        )
    credential, at, servers_text = location.rpartition("@")
    user, _, password = credential.partition(":") if at else (USER, "", USER)
    is_tls = scheme == TLS_SCHEME
    servers = tuple(_server(text, TLS_PORT if is_tls else PORT) for text in servers_text.split(","))
    virtual_host = unquote(path) or "/"
    if namespace is None:
        if len(servers) > 1:
            raise ConfigurationError(
                f"the address names {len(servers)} servers: give namespace= too, a name for the "
                "cluster. Checkpoints are kept under it, so it must stay the same when the servers "
                "change"
            )
        host, port = servers[0]
        named = "" if virtual_host == "/" else f"{quote(virtual_host, safe='')}@"
        namespace = f"{named}{host}:{port}"
    return StreamAddress(
        servers=servers,
        stream=stream,
        virtual_host=virtual_host,
        namespace=namespace,
        is_tls=is_tls,
        username=unquote(user),
        password=unquote(password),
    )


def _server(text: str, default_port: int) -> tuple[str, int]:
    found = _SERVER.fullmatch(text)
    port = int((found and found["port"]) or default_port)
    if found is None or not 0 < port <= _PORT_MAX:
        raise ConfigurationError(f"{text!r} is not HOST or HOST:PORT; the form is {FORM}")
    return found["host"].strip("[]"), port
