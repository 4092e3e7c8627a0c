"""The address of a topic, and the names under which its consumer groups keep their records.

Rule: an event hub has the same names over Kafka as over AMQP. So a consumer group that changes the
protocol finds its former records and is refused, instead of silently starting again.

With an identity, the client gets tokens of Entra ID by SASL's mechanism OAUTHBEARER.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from eventproc._base.identity import AnyTokenCredential, NoTokenError, SharedCredential, shared
from eventproc.errors import ConfigurationError
from eventproc.sources._connection_string import parse_connection_string
from eventproc.sources.kafka._errors import TokenError


class Tokens:
    """Gives the client the tokens of a credential."""

    def __init__(self, credential: AnyTokenCredential, host: str) -> None:
        """Use the credential, which is not closed, for the namespace with this host name."""
        self._credential = cast("SharedCredential", shared(credential))
        self._scope = f"https://{host}/.default"
        self.reason = ""
        """Why the client got no token when it asked last; empty if it got one."""

    async def check(self) -> None:
        """Raise an error now if the client would get no token.

        Raises:
            TokenError: The credential gives none; the message has the remedy.
        """
        try:
            await self._credential.get_token(self._scope)
        except NoTokenError as error:
            raise TokenError(str(error)) from error

    def __call__(self, _: str) -> tuple[str, float]:
        """Return a token and when it expires, in seconds since the epoch; blocks.

        librdkafka calls it on a thread of its own when 80 % of a token's life are over, and again
        after ten seconds if it raises an error.

        Raises:
            TokenError: The credential gives none, and the former one has expired.
        """
        try:
            token = asyncio.run(self._credential.get_token(self._scope))
        except NoTokenError as error:
            self.reason = str(error)
            raise TokenError(self.reason) from error
        self.reason = ""
        return token.token, float(token.expires_on)


PORT_OF_EVENT_HUBS: Final = 9093
PORT_OF_EMULATOR: Final = 9092

_EVENT_HUBS: Final = re.compile(
    r"(?P<host>[^:,]+\.servicebus\.(?:windows\.net|usgovcloudapi\.net|chinacloudapi\.cn))"
    rf":{PORT_OF_EVENT_HUBS}",
    re.IGNORECASE,
)
_SERVER: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:,/@\[\]]+):\d{1,5}")
_HOST: Final = re.compile(r"[A-Za-z0-9.-]+")
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""A valid name of a topic in Kafka; the name of an event hub is always one."""

_OF_AZURE: Final[Mapping[str, object]] = {
    # Azure closes a connection that is idle for four minutes.
    "connections.max.idle.ms": 180_000,
    "socket.keepalive.enable": True,
}

_ASKS_FOR_TOKENS: Final = "oauth_cb"
"""The setting with what the client calls for a token."""

CONNECTION_STRING_USER: Final = "$ConnectionString"
"""The SASL user name that tells Event Hubs that the password is a connection string."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAddress:
    """The address of a topic. Its ``repr`` contains no secret."""

    bootstrap_servers: str
    topic: str
    namespace: str
    """The first part of every record's key."""

    settings: Mapping[str, object] = field(default_factory=dict, repr=False)
    """The user's and the security settings of the client; they may contain a secret."""

    @property
    def tokens(self) -> Tokens | None:
        """What gives the client tokens of Entra ID; ``None`` if it asks for none."""
        given = self.settings.get(_ASKS_FOR_TOKENS)
        return given if isinstance(given, Tokens) else None

    @property
    def is_of_event_hubs(self) -> bool:
        """Whether the address was made for Event Hubs' Kafka endpoint."""
        return (
            self.tokens is not None or self.settings.get("sasl.username") == CONNECTION_STRING_USER
        )

    def is_topic(self, name: str) -> bool:
        """Whether a name that the broker gives is that of the topic.

        Event Hubs ignore case, and keep the name as the consumers of a group wrote it.
        """
        same = name.lower() == self.topic.lower()
        return same if self.is_of_event_hubs else name == self.topic


def address_of(
    bootstrap_servers: str,
    topic: str,
    namespace: str | None,
    config: Mapping[str, object] | None,
) -> TopicAddress:
    """Check the names, and choose the namespace under which records are kept.

    Args:
        bootstrap_servers: ``host:port``, or several, separated by commas.
        topic: the topic's name.
        namespace: a name for the cluster; required if there are several servers.
        config: settings of the client.

    Raises:
        ConfigurationError: a name is not valid, or the namespace is missing.
    """
    if "=" in bootstrap_servers:  # it could be a whole connection string
        raise ConfigurationError(
            "give host:port, or several with commas between; this is not the place of a "
            "connection string",
            setting="bootstrap_servers",
        )
    servers = [server.strip() for server in bootstrap_servers.split(",")]
    for server in servers:
        if not _SERVER.fullmatch(server):
            raise ConfigurationError(
                "give host:port, or several with commas between",
                setting="bootstrap_servers",
                value=repr(bootstrap_servers),
            )
    if not _TOPIC.fullmatch(topic) or topic in {".", ".."}:
        raise ConfigurationError(
            "give up to 249 letters, digits, dots, underscores and dashes",
            setting="topic",
            value=repr(topic),
        )
    if namespace is None:
        if len(servers) > 1:
            raise ConfigurationError(
                f"for {len(servers)} servers, give namespace= too, a name for the cluster. "
                "Checkpoints are kept under it, so it must stay the same when the servers change",
                setting="bootstrap_servers",
            )
        hub = _EVENT_HUBS.fullmatch(servers[0])
        namespace = hub["host"] if hub else servers[0]
    return TopicAddress(
        bootstrap_servers=",".join(servers),
        topic=topic,
        namespace=namespace,
        settings=dict(config or {}),
    )


def address_in(
    conn_str: str,
    topic: str | None,
    bootstrap_servers: str | None,
    config: Mapping[str, object] | None = None,
) -> TopicAddress:
    """Return the address of Event Hubs' Kafka endpoint for a connection string.

    Raises:
        ConfigurationError: the string cannot work; the message says what to do and does not
            contain the key.
    """
    hub = parse_connection_string(conn_str, topic, called="topic")
    if hub.is_over_websockets:
        raise ConfigurationError(
            "TransportType=AmqpWebSockets in the connection string has no effect over Kafka: "
            "remove it, or read the hub over AMQP"
        )
    host = hub.fully_qualified_namespace.rpartition(":")[0] or hub.fully_qualified_namespace
    port = PORT_OF_EMULATOR if hub.is_emulator else PORT_OF_EVENT_HUBS
    settings = {
        "security.protocol": "SASL_PLAINTEXT" if hub.is_emulator else "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": CONNECTION_STRING_USER,
        "sasl.password": conn_str,
        **_OF_AZURE,
        **(config or {}),
    }
    servers = bootstrap_servers or f"{host}:{port}"
    return address_of(servers, hub.eventhub_name, hub.fully_qualified_namespace, settings)


def address_with_identity(
    host: str,
    topic: str,
    credential: AnyTokenCredential,
    bootstrap_servers: str | None,
    config: Mapping[str, object] | None,
) -> TopicAddress:
    """Return the address of a namespace's Kafka endpoint, for a client that asks for tokens.

    Raises:
        ConfigurationError: a name is not valid, or the config has a callback for tokens.
    """
    if config and _ASKS_FOR_TOKENS in config:
        raise ConfigurationError(
            f"{_ASKS_FOR_TOKENS!r} cannot be set: the credential gives the tokens",
            setting="config",
        )
    if not _HOST.fullmatch(host):
        raise ConfigurationError(
            "give its host name alone, for example contoso.servicebus.windows.net",
            setting="fully_qualified_namespace",
            value=repr(host),
        )
    settings = {
        **_OF_AZURE,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        **(config or {}),
        _ASKS_FOR_TOKENS: Tokens(credential, host),
    }
    servers = bootstrap_servers or f"{host}:{PORT_OF_EVENT_HUBS}"
    return address_of(servers, topic, host, settings)
