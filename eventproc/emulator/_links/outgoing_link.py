"""Links on which a client receives: a partition's events, or the responses of a service node.

Rule 1: a link stops at its credit, at the session's window and while the client does not read. It
reads no more events from the log than it can send.
Rule 2: a message is encoded once, when it is published. A delivery only puts forty bytes in front
of it, in one call, which takes about a microsecond.
"""

import asyncio
import struct
from abc import ABC, abstractmethod
from collections import deque
from typing import Final

from eventproc._base.amqp import DELIVERY_ANNOTATIONS
from eventproc.emulator._amqp.encoding import encode
from eventproc.emulator._amqp.framing import encode_frame
from eventproc.emulator._amqp.performatives import Attach, Flow, Source, Transfer
from eventproc.emulator._amqp.refusal import NOT_ALLOWED, RefusedError
from eventproc.emulator._amqp.values import Array, Described, Long, Symbol, Timestamp, ULong, Value
from eventproc.emulator._hub.log import EARLIEST, StartPosition, parse_selector
from eventproc.emulator._links.interfaces import Address, LinkSession

BATCH_MAX: Final = 512
"""Deliveries sent before the loop serves other connections."""

BATCH_BYTES_MAX: Final = 256 * 1024
"""Bytes sent before the loop serves other connections."""

EPOCH: Final = "com.microsoft:epoch"
RECEIVER_NAME: Final = "com.microsoft:receiver-name"
RUNTIME_METRIC: Final = "com.microsoft:enable-receiver-runtime-metric"
SELECTOR: Final = "apache.org:selector-filter:string"

_UNSETTLED: Final = 0
_HEAD: Final = struct.Struct(">IHH12sI2sI8s")
"""A frame's head and a whole transfer: size, type, channel, the fields before the delivery id, the
id, the constructor of the tag, the tag (the id again), and the fields after it."""
_TRANSFER: Final = b"\x00\x53\x14\xc0\x19\x0b\x70"


class OutgoingLink(ABC):
    """Credit, windows and frames. Subclasses provide the messages."""

    def __init__(self, session: LinkSession, attach: Attach) -> None:
        self._session = session
        self.handle = attach.handle
        self._credit = 0
        self._delivery_count = 0
        self._drain = False
        self._unsent: deque[bytes] = deque()
        self._timer: asyncio.Handle | None = None
        self._settled = attach.snd_settle_mode != _UNSETTLED
        self._up_to_id = _TRANSFER + struct.pack(">I", attach.handle) + b"\x70"
        settled = b"\x41" if self._settled else b"\x42"
        self._behind_tag = b"\x43" + settled + b"\x42\x40\x40\x42\x42\x42"

    @abstractmethod
    def _take(self, count_max: int, bytes_max: int) -> list[bytes]:
        """Remove and return the next messages to send, within these limits."""

    def open(self) -> None:
        """Do nothing: sending starts with the client's first flow."""
        return

    def flow(self, flow: Flow) -> None:
        """Handle the client's credit, and its request to drain it."""
        if flow.link_credit is not None:
            granted = (flow.delivery_count or 0) + flow.link_credit
            self._credit = max(0, granted - self._delivery_count)
        self._drain = flow.drain
        if flow.echo and not flow.drain:
            self._send_state()
        self.wake()

    def wake(self, *, at_once: bool = False) -> None:
        """Schedule sending; with ``at_once`` skip the delay of a fault."""
        if at_once and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._timer is None and (self._credit or self._unsent):
            loop = self._session.connection.loop
            delay_s = self._delay_s()
            if delay_s:
                self._timer = loop.call_later(delay_s, self._pump)
            else:
                self._timer = loop.call_soon(self._pump)

    def _delay_s(self) -> float:
        return 0.0

    def _pump(self) -> None:
        self._timer = None
        connection = self._session.connection
        if connection.is_paused:
            return  # the connection calls wake() when it has drained
        if self._send_unsent():  # else the session calls wake() when its window opens
            count_max = min(self._credit, self._session.remote_window, BATCH_MAX)
            messages = self._take(count_max, BATCH_BYTES_MAX) if count_max else []
            if messages:
                self._send(messages)
                self.wake()
            elif self._drain and count_max:
                self._delivery_count += self._credit
                self._credit = 0
                self._send_state()
        connection.flush()

    def _send(self, messages: list[bytes]) -> None:
        session = self._session
        connection = session.connection
        payload_max = connection.peer_frame_size_max - _HEAD.size
        delivery_id = session.next_delivery_id
        parts = []
        pack, head_size, channel = _HEAD.pack, _HEAD.size, session.channel
        up_to_id, behind_tag = self._up_to_id, self._behind_tag
        for message in messages:
            size = len(message)
            if size > payload_max or self._unsent:
                self._unsent.extend(self._split(message, delivery_id, payload_max))
            else:
                head = (head_size + size, 0x0200, channel, up_to_id, delivery_id, b"\xa0\x04")
                parts.append(pack(*head, delivery_id, behind_tag))
                parts.append(message)
            delivery_id = (delivery_id + 1) & 0xFFFFFFFF
        session.next_delivery_id = delivery_id
        self._credit -= len(messages)
        self._delivery_count += len(messages)
        if parts:
            connection.send(b"".join(parts))
            session.sent(len(parts) // 2)
        if self._unsent:
            self._send_unsent()

    def _split(self, message: bytes, delivery_id: int, payload_max: int) -> list[bytes]:
        """Split a message into frames, which wait for the session's window."""
        frames = []
        for at in range(0, len(message), payload_max):
            more = at + payload_max < len(message)
            transfer = Transfer(
                self.handle,
                delivery_id,
                struct.pack(">I", delivery_id),
                0,
                self._settled,
                more=more,
            )
            body = transfer.described() + message[at : at + payload_max]
            frames.append(encode_frame(body, self._session.channel))
        return frames

    def _send_unsent(self) -> bool:
        """Send the remaining frames of split messages; return whether all were sent."""
        count = min(len(self._unsent), self._session.remote_window)
        for _ in range(count):
            self._session.connection.send(self._unsent.popleft())
        self._session.sent(count)
        return not self._unsent

    def _send_state(self) -> None:
        self._session.send_flow(
            handle=self.handle,
            delivery_count=self._delivery_count & 0xFFFFFFFF,
            link_credit=self._credit,
            drain=self._drain,
        )

    def ended(self) -> None:
        """Stop sending after the link has ended."""
        if self._timer is not None:
            self._timer.cancel()
        self._credit = 0
        self._unsent.clear()


class DeliveryLink(OutgoingLink):
    """A consumer's link to one partition."""

    def __init__(self, session: LinkSession, attach: Attach, address: Address) -> None:
        super().__init__(session, attach)
        connection = session.connection
        if address.consumer_group is None or address.partition_id is None:
            raise RefusedError(NOT_ALLOWED, f"Events cannot be received from '{address.path}'.")
        hub = connection.namespace.hub(address.hub, address.path)
        hub.check_consumer_group(address.consumer_group, address.path)
        self.hub_name = hub.name
        self.consumer_group = address.consumer_group
        self.partition = hub.partition(address.partition_id)
        self.epoch, self.receiver_name = _identity_of(attach)
        self.wants_metric = _names(attach.desired_capabilities, RUNTIME_METRIC)
        self._faults = connection.faults
        position = _position_of(attach)
        self._faults.check_position(position)
        self._next = self.partition.log.start_of(position)
        self.partition.admit(self, address.consumer_group)

    def _take(self, count_max: int, bytes_max: int) -> list[bytes]:
        events = self.partition.log.read(self._next, count_max, bytes_max)
        if not events:
            return []
        self._next = events[-1].sequence_number + 1
        if not self.wants_metric:
            return [event.payload for event in events]
        metric = self._metric()
        return [
            event.payload[: event.header_length] + metric + event.payload[event.header_length :]
            for event in events
        ]

    def _metric(self) -> bytes:
        log = self.partition.log.properties()
        return encode(
            Described(
                ULong(DELIVERY_ANNOTATIONS),
                {
                    Symbol("last_enqueued_sequence_number"): Long(log.last_sequence_number),
                    Symbol("last_enqueued_offset"): str(log.last_offset),
                    Symbol("last_enqueued_time_utc"): Timestamp(log.last_enqueued_ms),
                    Symbol("runtime_info_retrieval_time_utc"): Timestamp(
                        self._session.connection.now_ms()
                    ),
                },
            )
        )

    def _delay_s(self) -> float:
        return self._faults.delivery_delay_s(self.hub_name, self.partition.partition_id)

    def refuse(self, reason: RefusedError) -> None:
        """End the link with a reason."""
        self._session.end_link(self.handle, reason)

    def is_at(self, hub_name: str, partition_id: str | None) -> bool:
        """Whether the link reads this hub, and this partition of it if one is given."""
        return self.hub_name == hub_name and partition_id in {None, self.partition.partition_id}

    def ended(self) -> None:
        """Stop sending, and deregister the receiver."""
        super().ended()
        self.partition.dismiss(self)


class ResponseLink(OutgoingLink):
    """A client's link from ``$cbs`` or ``$management``."""

    def __init__(self, session: LinkSession, attach: Attach, address: Address) -> None:
        super().__init__(session, attach)
        self.node = address.hub
        target = attach.target
        self.reply_to = None if target is None or isinstance(target, Described) else target.address
        self._responses: deque[bytes] = deque()

    def enqueue(self, response: bytes) -> None:
        """Send a response as soon as there is credit for it."""
        self._responses.append(response)
        self.wake()

    def _take(self, count_max: int, bytes_max: int) -> list[bytes]:
        del bytes_max  # responses are small
        return [self._responses.popleft() for _ in range(min(count_max, len(self._responses)))]


def _identity_of(attach: Attach) -> tuple[int | None, str]:
    """Return a receiver's epoch, and its name in the service's messages ('nil' without one)."""
    properties = attach.properties or {}
    epoch = properties.get(Symbol(EPOCH))
    name = properties.get(Symbol(RECEIVER_NAME))
    is_number = isinstance(epoch, int) and not isinstance(epoch, bool)
    return (int(epoch) if is_number else None), name if isinstance(name, str) else "nil"  # type: ignore[arg-type]


def _position_of(attach: Attach) -> StartPosition:
    filters = attach.source.filter if isinstance(attach.source, Source) else None
    for name, value in (filters or {}).items():
        selector = value.value if isinstance(value, Described) else value
        if name == SELECTOR and isinstance(selector, str):
            return parse_selector(selector)
    return EARLIEST


def _names(capabilities: Value, wanted: str) -> bool:
    """Whether a field of one or several symbols contains this one."""
    return (
        wanted in capabilities if isinstance(capabilities, Array | list) else capabilities == wanted
    )
