"""A session: the links on one channel of a connection, and the windows they share.

Rule 1: our channel and handles equal the client's, so one table is enough.
Rule 2: after we end a link, its handle is remembered until the client confirms with a detach. What
arrives on it before that was already on its way, and is dropped.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

from eventproc._base.amqp import MalformedError
from eventproc.emulator._amqp.composite import Composite
from eventproc.emulator._amqp.framing import encode_frame
from eventproc.emulator._amqp.performatives import (
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Flow,
    Performative,
    Source,
    Target,
    Transfer,
)
from eventproc.emulator._amqp.refusal import NOT_IMPLEMENTED, RefusedError, token_expired
from eventproc.emulator._amqp.values import Array, Symbol, Value
from eventproc.emulator._links.incoming_link import IncomingLink, PublishLink, RequestLink
from eventproc.emulator._links.interfaces import ClientConnection, parse_address
from eventproc.emulator._links.outgoing_link import (
    RUNTIME_METRIC,
    DeliveryLink,
    OutgoingLink,
    ResponseLink,
)
from eventproc.emulator._tokens import Right

INCOMING_WINDOW: Final = 5000
"""Frames that a client may send ahead: the service's value. Renewed when half of it is used."""

OUTGOING_WINDOW: Final = 0x7FFFFFFF
HANDLE_MAX: Final = 0xFF
"""The service's value. Never null: azure-eventhub compares with it."""

_SYMBOL_8: Final = 0xA3

Link: TypeAlias = IncomingLink | OutgoingLink


class Session:
    """One session."""

    def __init__(self, connection: ClientConnection, channel: int, begin: Begin) -> None:
        self.connection = connection
        self.channel = channel
        self.next_delivery_id = 0
        self._next_outgoing_id = 0
        self.remote_window = begin.incoming_window
        self._next_incoming_id = begin.next_outgoing_id
        self._incoming_window = INCOMING_WINDOW
        self._links: dict[int, Link] = {}
        self._ended: set[int] = set()
        self._write(
            Begin(channel, 0, INCOMING_WINDOW, OUTGOING_WINDOW, min(begin.handle_max, HANDLE_MAX))
        )

    @property
    def links(self) -> Iterator[Link]:
        """The links that are attached."""
        return iter(tuple(self._links.values()))

    def respond(self, node: str, reply_to: Value, response: bytes) -> None:
        """Send a node's response on the link that the request names, else on the first."""
        found = [link for link in self.links if isinstance(link, ResponseLink)]
        found = [link for link in found if link.node == node]
        named = [link for link in found if link.reply_to == reply_to]
        for link in (named or found)[:1]:
            link.enqueue(response)

    # --- input -----------------------------------------------------------------------------------

    def receive(self, performative: Performative, payload: bytes) -> None:
        """Handle a frame of this session.

        Raises:
            MalformedError: The client violated the protocol.
        """
        match performative:
            case Transfer():
                self._transfer(performative, payload)
            case Flow():
                self._flow(performative)
            case Attach():
                self._attach(performative)
            case Detach():
                self._detach(performative)
            case Disposition():
                pass  # our deliveries are settled when they are sent, or need no confirmation
            case _:
                raise MalformedError(f"{type(performative).__name__} inside a session")

    def _transfer(self, transfer: Transfer, payload: bytes) -> None:
        self._next_incoming_id = (self._next_incoming_id + 1) & 0xFFFFFFFF
        self._incoming_window -= 1
        link = self._links.get(transfer.handle)
        if isinstance(link, IncomingLink):
            link.transfer(transfer, payload)
        elif transfer.handle not in self._ended:
            raise MalformedError(f"a transfer on handle {transfer.handle}, which does not receive")
        if self._incoming_window <= INCOMING_WINDOW // 2:
            self.send_flow()

    def _flow(self, flow: Flow) -> None:
        # A client that has not seen our begin does not send our next id, which is zero then.
        seen = flow.next_incoming_id or 0
        self.remote_window = max(0, seen + flow.incoming_window - self._next_outgoing_id)
        if flow.handle is not None:
            link = self._links.get(flow.handle)
            if link is not None:
                link.flow(flow)
            elif flow.handle not in self._ended:
                raise MalformedError(f"a flow on handle {flow.handle}, which is not attached")
        elif flow.echo:
            self.send_flow()
        self.wake()

    def wake(self, *, at_once: bool = False) -> None:
        """Let waiting links send: the window has opened, or the connection has drained."""
        for link in self.links:
            if isinstance(link, OutgoingLink):
                link.wake(at_once=at_once)

    def _attach(self, attach: Attach) -> None:
        if attach.handle in self._links or attach.handle > HANDLE_MAX:
            raise MalformedError(f"handle {attach.handle} is taken, or above {HANDLE_MAX}")
        self._ended.discard(attach.handle)
        try:
            link = self._make_link(attach)
        except RefusedError as refusal:
            # An attach without source and target announces that a detach follows.
            self._write(
                Attach(attach.name, attach.handle, role=not attach.role, initial_delivery_count=0)
            )
            self._write(Detach(attach.handle, closed=True, error=refusal.as_error()))
            self._ended.add(attach.handle)
            return
        self._links[attach.handle] = link
        metric = isinstance(link, DeliveryLink) and link.wants_metric
        self._write(
            Attach(
                attach.name,
                attach.handle,
                role=not attach.role,
                snd_settle_mode=attach.snd_settle_mode,
                source=attach.source,
                target=attach.target,
                initial_delivery_count=0,
                max_message_size=self.connection.configuration.message_size_max,
                offered_capabilities=Array(_SYMBOL_8, [Symbol(RUNTIME_METRIC)]) if metric else None,
            )
        )
        link.open()

    def _make_link(self, attach: Attach) -> Link:
        terminus = attach.source if attach.role else attach.target
        if not isinstance(terminus, Source | Target):
            raise RefusedError(
                NOT_IMPLEMENTED, "Only sources and targets with an address are known."
            )
        address = parse_address(terminus.address)
        if address.is_service_node:
            return (ResponseLink if attach.role else RequestLink)(self, attach, address)
        self.connection.faults.check_link()
        right = Right.LISTEN if attach.role else Right.SEND
        self.connection.access.require(
            address.hub, (right,), address.path, self.connection.now_ms() / 1000
        )
        return (DeliveryLink if attach.role else PublishLink)(self, attach, address)

    def _detach(self, detach: Detach) -> None:
        if detach.handle in self._ended:
            self._ended.discard(detach.handle)
            return
        link = self._links.pop(detach.handle, None)
        if link is None:
            raise MalformedError(f"a detach of handle {detach.handle}, which is not attached")
        link.ended()
        self._write(Detach(detach.handle, closed=detach.closed))

    def end_links_of(self, hub: str) -> None:
        """End the links to a hub (in lower case) whose token has expired."""
        for handle, link in tuple(self._links.items()):
            if isinstance(link, DeliveryLink | PublishLink) and link.hub_name.casefold() == hub:
                right = Right.LISTEN if isinstance(link, DeliveryLink) else Right.SEND
                self.end_link(handle, token_expired(f"link-{handle}", right, link.hub_name))

    def end(self) -> None:
        """Handle the client's end of the session."""
        self.lost()
        self._write(End())

    # --- output ----------------------------------------------------------------------------------

    def end_link(self, handle: int, reason: RefusedError) -> None:
        """End a link from our side."""
        self._links.pop(handle).ended()
        self._ended.add(handle)
        self._write(Detach(handle, closed=True, error=reason.as_error()))
        self.connection.flush()

    def sent(self, frame_count: int) -> None:
        """Count transfers that were sent."""
        self._next_outgoing_id += frame_count
        self.remote_window -= frame_count

    def send_flow(
        self,
        *,
        handle: int | None = None,
        delivery_count: int | None = None,
        link_credit: int | None = None,
        drain: bool = False,
    ) -> None:
        """Send the session's flow state, and a link's if *handle* is given."""
        self._incoming_window = INCOMING_WINDOW
        self._write(
            Flow(
                self._next_incoming_id,
                INCOMING_WINDOW,
                self._next_outgoing_id & 0xFFFFFFFF,
                OUTGOING_WINDOW,
                handle,
                delivery_count,
                link_credit,
                None if handle is None else 0,
                drain,
            )
        )

    def _write(self, composite: Composite) -> None:
        self.connection.send(encode_frame(composite.described(), self.channel))

    def lost(self) -> None:
        """End all links: the connection or the session is gone."""
        for link in self.links:
            link.ended()
        self._links.clear()
