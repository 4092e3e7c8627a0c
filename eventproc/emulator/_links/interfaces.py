"""What a session needs of its connection, and a link of its session.

A connection makes its sessions and a session its links; each of them answers through its maker.
These interfaces keep the modules free of import cycles. Here are also what passes between them:
the access that the tokens of a connection give, and the address of a link.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from eventproc.emulator._amqp.refusal import RefusedError, entity_not_found, right_missing
from eventproc.emulator._amqp.values import Value
from eventproc.emulator._faults import Faults
from eventproc.emulator._hub.configuration import EmulatorConfiguration
from eventproc.emulator._hub.hub import Clock, Namespace
from eventproc.emulator._tokens import Grant, Right, TokenRules, grant_for


class Access:
    """The newest token for each hub. Without rules everything is allowed."""

    def __init__(self, rules: TokenRules | None) -> None:
        self._rules = rules
        self._grants: dict[str, Grant] = {}

    def present(self, hub: str, kind: str, token: str, now_s: float) -> None:
        """Take a token for a hub; it replaces the former one.

        Raises:
            RefusedError: The token is not taken.
        """
        if self._rules is not None:
            self._grants[hub.casefold()] = grant_for(self._rules, kind, token, now_s)

    def require(self, hub: str, rights: tuple[Right, ...], path: str, now_s: float) -> None:
        """Raise ``RefusedError`` if the newest token for a hub has none of the rights."""
        if self._rules is None:
            return
        grant = self._grants.get(hub.casefold())
        if grant is None or grant.has_expired(now_s) or not set(rights) & set(grant.rights):
            raise right_missing(rights[0], path)

    def expired(self, now_s: float) -> Iterator[str]:
        """Forget tokens that have expired, and yield their hubs in lower case."""
        for hub, grant in list(self._grants.items()):
            if grant.has_expired(now_s):
                del self._grants[hub]
                yield hub

    def next_expiry_s(self) -> float | None:
        """Return when the next token expires, in seconds since the epoch."""
        return min(
            (g.expires_at_s for g in self._grants.values() if g.expires_at_s is not None),
            default=None,
        )


class ClientConnection(Protocol):
    """The connection of one client."""

    configuration: EmulatorConfiguration
    namespace: Namespace
    faults: Faults
    access: Access
    now_ms: Clock
    loop: asyncio.AbstractEventLoop
    peer_frame_size_max: int
    is_paused: bool
    """Whether the client reads more slowly than the emulator sends."""

    @abstractmethod
    def watch_tokens(self) -> None:
        """End links when their token expires, from now on at the newest expiry."""

    @abstractmethod
    def send(self, data: bytes) -> None:
        """Queue data for the next ``flush``."""

    @abstractmethod
    def flush(self) -> None:
        """Write the queued data to the transport."""


class LinkSession(Protocol):
    """The session of a link."""

    connection: ClientConnection
    channel: int
    next_delivery_id: int
    remote_window: int
    """Frames that the client can still receive."""

    @abstractmethod
    def respond(self, node: str, reply_to: Value, response: bytes) -> None:
        """Send a service node's response."""

    @abstractmethod
    def sent(self, frame_count: int) -> None:
        """Count transfers that have gone out."""

    @abstractmethod
    def send_flow(
        self,
        *,
        handle: int | None = None,
        delivery_count: int | None = None,
        link_credit: int | None = None,
        drain: bool = False,
    ) -> None:
        """Send the session's flow state, and a link's if *handle* is given."""

    @abstractmethod
    def end_link(self, handle: int, reason: RefusedError) -> None:
        """End a link from the emulator's side."""


CBS: Final = "$cbs"
MANAGEMENT: Final = "$management"


@dataclass(frozen=True, slots=True)
class Address:
    """A hub, a partition, a partition as read by a consumer group, or a node of the service."""

    path: str
    """Without scheme and host, as in the service's messages."""

    hub: str
    """The hub's name; ``$cbs`` or ``$management`` for the service's own nodes."""

    consumer_group: str | None = None
    partition_id: str | None = None

    @property
    def is_service_node(self) -> bool:
        """Whether the node answers requests rather than storing events."""
        return self.hub in {CBS, MANAGEMENT}


def path_of(address: str) -> str:
    """Strip scheme and host: clients send ``amqps://host:port/path`` or only the path."""
    _, has_scheme, rest = address.partition("://")
    return rest.partition("/")[2].strip("/") if has_scheme else address.strip("/")


def parse_address(address: Value) -> Address:
    """Parse the address of a link.

    It is ``hub``, ``hub/Partitions/0``, ``hub/ConsumerGroups/group/Partitions/0``, ``$cbs`` or
    ``$management``; case does not matter in the fixed words.

    Raises:
        RefusedError: The address has another form.
    """
    path = path_of(address) if isinstance(address, str) else ""
    segments = path.split("/")
    words = [segment.casefold() for segment in segments[1::2]]
    if segments[-1] in {CBS, MANAGEMENT}:
        return Address(path, segments[-1])
    if len(segments) == 1 and path:
        return Address(path, path)
    if len(segments) == 3 and words == ["partitions"]:
        return Address(path, segments[0], None, segments[2])
    if len(segments) == 5 and words == ["consumergroups", "partitions"]:
        return Address(path, segments[0], segments[2], segments[4])
    raise entity_not_found(path)
