"""What a session needs of its connection, and a link of its session.

A connection makes its sessions and a session its links; each of them answers through its maker.
These interfaces keep the modules free of import cycles.
"""

import asyncio
from abc import abstractmethod
from typing import Protocol

from eventproc.emulator.amqp.refusal import RefusedError
from eventproc.emulator.amqp.values import Value
from eventproc.emulator.faults import Faults
from eventproc.emulator.hub.configuration import EmulatorConfiguration
from eventproc.emulator.hub.hub import Clock, Namespace
from eventproc.emulator.links.access import Access


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
