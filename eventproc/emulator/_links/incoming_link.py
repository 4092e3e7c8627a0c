"""Links on which a client sends: events to a hub, requests to a service node.

Rule 1: a delivery is answered only after it was stored (or refused).
Rule 2: a request's delivery is settled before its response is sent: one of the Azure SDKs fails
if they arrive in the other order.
"""

import struct
from abc import ABC, abstractmethod
from typing import Final

from eventproc._base.amqp import MalformedError
from eventproc.emulator._amqp.framing import encode_frame
from eventproc.emulator._amqp.message import drafts_of, read_message
from eventproc.emulator._amqp.performatives import Attach, Disposition, Flow, Rejected, Transfer
from eventproc.emulator._amqp.refusal import DECODE_ERROR, RefusedError, message_too_large
from eventproc.emulator._amqp.values import Value
from eventproc.emulator._links.interfaces import CBS, Address, LinkSession
from eventproc.emulator._links.service_nodes import answer_cbs, answer_management

CREDIT: Final = 1000
"""Deliveries that a client may send ahead. Renewed when half of it is used."""

_ACCEPTED_HEAD: Final = b"\x00\x53\x15\xc0\x0e\x06\x41\x70"
_ACCEPTED_TAIL: Final = b"\x40\x41\x00\x53\x24\x45\x42"
_ACCEPTED_FRAME: Final = struct.Struct(f">IBBH{len(_ACCEPTED_HEAD)}sI{len(_ACCEPTED_TAIL)}s")


def accepted_frame(channel: int, delivery_id: int) -> bytes:
    """Encode an "accepted" disposition in one call: busy hubs write little else."""
    return _ACCEPTED_FRAME.pack(
        _ACCEPTED_FRAME.size, 2, 0, channel, _ACCEPTED_HEAD, delivery_id, _ACCEPTED_TAIL
    )


class IncomingLink(ABC):
    """Joins frames into messages, accepts or rejects them, and grants credit."""

    def __init__(self, session: LinkSession, attach: Attach) -> None:
        self._session = session
        self.handle = attach.handle
        self._size_max = session.connection.configuration.message_size_max
        self._delivery_count = attach.initial_delivery_count or 0
        self._credit = 0
        self._parts: list[bytes] = []
        self._size = 0
        self._first: Transfer | None = None

    def open(self) -> None:
        """Grant the first credit after the link was attached."""
        self._give_credit()

    def flow(self, flow: Flow) -> None:
        """Handle the client's flow state; answer if it asks for ours."""
        if flow.echo:
            self._give_credit()

    def transfer(self, transfer: Transfer, payload: bytes) -> None:
        """Handle one frame of a delivery."""
        if self._first is None:
            if transfer.delivery_id is None:
                raise MalformedError("a delivery begins without its id")
            self._first = transfer
        first = self._first
        self._size += len(payload)
        if self._size <= self._size_max:
            self._parts.append(payload)
        else:
            self._parts.clear()  # too large: keep only its size
        if transfer.more and not transfer.aborted:
            return
        message = payload if len(self._parts) == 1 else b"".join(self._parts)
        size = self._size
        self._first, self._size = None, 0
        self._parts.clear()
        self._delivery_count = (self._delivery_count + 1) & 0xFFFFFFFF
        self._credit -= 1
        if not transfer.aborted:
            self._complete(first, message, size, settled=bool(first.settled or transfer.settled))
        if self._credit <= CREDIT // 2:
            self._give_credit()

    def _complete(self, first: Transfer, message: bytes, size: int, *, settled: bool) -> None:
        assert first.delivery_id is not None
        refusal = None
        try:
            if size > self._size_max:
                raise message_too_large(first.delivery_id, size, self._size_max)
            self._accept(message, first.message_format or 0)
        except RefusedError as error:
            refusal = error
        except MalformedError as error:
            refusal = RefusedError(DECODE_ERROR, f"The message cannot be read: {error}.")
        if not settled:
            self._settle(first.delivery_id, refusal)
        self._respond()

    def _settle(self, delivery_id: int, refusal: RefusedError | None) -> None:
        channel = self._session.channel
        if refusal is None:
            frame = accepted_frame(channel, delivery_id)
        else:
            rejected = Rejected(refusal.as_error())
            disposition = Disposition(role=True, first=delivery_id, settled=True, state=rejected)
            frame = encode_frame(disposition.described(), channel)
        self._session.connection.send(frame)

    def _give_credit(self) -> None:
        self._credit = CREDIT
        self._session.send_flow(
            handle=self.handle, delivery_count=self._delivery_count, link_credit=CREDIT
        )

    def ended(self) -> None:
        """Discard an incomplete delivery after the link has ended."""
        self._parts.clear()

    @abstractmethod
    def _accept(self, message: bytes, message_format: int) -> None:
        """Store a message, or raise ``RefusedError``."""

    def _respond(self) -> None:
        """Send what follows the disposition: nothing, for most links."""
        return


class PublishLink(IncomingLink):
    """A producer's link to a hub or to one partition of it."""

    def __init__(self, session: LinkSession, attach: Attach, address: Address) -> None:
        super().__init__(session, attach)
        self._hub = session.connection.namespace.hub(address.hub, address.path)
        self._partition_id = address.partition_id
        self.hub_name = self._hub.name
        if address.partition_id is not None:
            self._hub.partition(address.partition_id)

    def _accept(self, message: bytes, message_format: int) -> None:
        self._session.connection.faults.check_send()
        drafts = drafts_of(message, message_format)
        if self._partition_id is None:
            partition = self._hub.partition_for(drafts)
        else:
            partition = self._hub.partition(self._partition_id)
        partition.publish(drafts)

    def is_at(self, hub_name: str, partition_id: str | None) -> bool:
        """Whether the link sends to this hub, and to this partition of it if one is given."""
        return self.hub_name == hub_name and partition_id in {None, self._partition_id}


class RequestLink(IncomingLink):
    """A client's link to ``$cbs`` or ``$management``."""

    def __init__(self, session: LinkSession, attach: Attach, address: Address) -> None:
        super().__init__(session, attach)
        self._node = address.hub
        self._response: tuple[Value, bytes] | None = None

    def _accept(self, message: bytes, message_format: int) -> None:
        del message_format  # a request is never a batch
        connection = self._session.connection
        request = read_message(message)
        if self._node == CBS:
            response = answer_cbs(
                request, connection.namespace, connection.access, connection.now_ms()
            )
            connection.watch_tokens()
        else:
            response = answer_management(
                request, connection.namespace, connection.access, connection.now_ms()
            )
        self._response = request.property_at(4), response

    def _respond(self) -> None:
        if self._response is not None:
            self._session.respond(self._node, *self._response)
            self._response = None
