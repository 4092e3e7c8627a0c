"""The nine performatives of AMQP's transport, and their parts. Pure.

http://docs.oasis-open.org/amqp/core/v1.0/os/amqp-core-transport-v1.0-os.html#section-performatives
"""

from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from eventproc._base.amqp import MalformedError
from eventproc.emulator._amqp.composite import Composite, required
from eventproc.emulator._amqp.values import (
    Described,
    Symbol,
    UByte,
    UInt,
    ULong,
    UShort,
    Value,
    decode,
)


@dataclass(slots=True)
class AmqpError(Composite):
    """Why something was refused or ended."""

    CODE: ClassVar = 0x1D
    WIRE: ClassVar = (Symbol, str, dict)

    condition: str = required()
    description: str | None = None
    info: dict[Value, Value] | None = None


@dataclass(slots=True)
class Open(Composite):
    """Begin a connection."""

    CODE: ClassVar = 0x10
    WIRE: ClassVar = (str, str, UInt, UShort, UInt, Symbol, Symbol, Symbol, Symbol, dict)

    container_id: str = required()
    hostname: str | None = None
    max_frame_size: int = 0xFFFFFFFF
    channel_max: int = 0xFFFF
    idle_time_out: int | None = None
    outgoing_locales: Value = None
    incoming_locales: Value = None
    offered_capabilities: Value = None
    desired_capabilities: Value = None
    properties: dict[Value, Value] | None = None


@dataclass(slots=True)
class Begin(Composite):
    """Begin a session on a channel."""

    CODE: ClassVar = 0x11
    WIRE: ClassVar = (UShort, UInt, UInt, UInt, UInt, Symbol, Symbol, dict)

    remote_channel: int | None
    next_outgoing_id: int = required()
    incoming_window: int = required()
    outgoing_window: int = required()
    handle_max: int = 0xFFFFFFFF
    offered_capabilities: Value = None
    desired_capabilities: Value = None
    properties: dict[Value, Value] | None = None


@dataclass(slots=True)
class Source(Composite):
    """The source of a link's messages."""

    CODE: ClassVar = 0x28
    WIRE: ClassVar = (
        *(object, UInt, Symbol, UInt, bool, dict, Symbol, dict, object, Symbol, Symbol),
    )

    address: Value = None
    durable: int | None = None
    expiry_policy: Value = None
    timeout: int | None = None
    dynamic: bool | None = None
    dynamic_node_properties: dict[Value, Value] | None = None
    distribution_mode: Value = None
    filter: dict[Value, Value] | None = None
    default_outcome: Value = None
    outcomes: Value = None
    capabilities: Value = None


@dataclass(slots=True)
class Target(Composite):
    """The target of a link's messages."""

    CODE: ClassVar = 0x29
    WIRE: ClassVar = (object, UInt, Symbol, UInt, bool, dict, Symbol)

    address: Value = None
    durable: int | None = None
    expiry_policy: Value = None
    timeout: int | None = None
    dynamic: bool | None = None
    dynamic_node_properties: dict[Value, Value] | None = None
    capabilities: Value = None


@dataclass(slots=True)
class Attach(Composite):
    """Begin a link. ``role`` is true for the side that receives."""

    CODE: ClassVar = 0x12
    WIRE: ClassVar = (
        *(str, UInt, bool, UByte, UByte, Source, Target),
        *(dict, bool, UInt, ULong, Symbol, Symbol, dict),
    )

    name: str = required()
    handle: int = required()
    role: bool = required()
    snd_settle_mode: int = 2
    rcv_settle_mode: int = 0
    source: Source | Described | None = None
    target: Target | Described | None = None
    unsettled: dict[Value, Value] | None = None
    incomplete_unsettled: bool = False
    initial_delivery_count: int | None = None
    max_message_size: int | None = None
    offered_capabilities: Value = None
    desired_capabilities: Value = None
    properties: dict[Value, Value] | None = None


@dataclass(slots=True)
class Flow(Composite):
    """How much may be sent: on the session, and on a link if ``handle`` is given."""

    CODE: ClassVar = 0x13
    WIRE: ClassVar = (*(UInt,) * 8, *(bool,) * 2, dict)

    next_incoming_id: int | None
    incoming_window: int = required()
    next_outgoing_id: int = required()
    outgoing_window: int = required()
    handle: int | None = None
    delivery_count: int | None = None
    link_credit: int | None = None
    available: int | None = None
    drain: bool = False
    echo: bool = False
    properties: dict[Value, Value] | None = None


@dataclass(slots=True)
class Transfer(Composite):
    """A message or a part of one, which is the frame's payload."""

    CODE: ClassVar = 0x14
    WIRE: ClassVar = (UInt, UInt, bytes, UInt, bool, bool, UByte, object, bool, bool, bool)

    handle: int = required()
    delivery_id: int | None = None
    delivery_tag: bytes | None = None
    message_format: int | None = None
    settled: bool | None = None
    more: bool = False
    rcv_settle_mode: int | None = None
    state: Value = None
    resume: bool = False
    aborted: bool = False
    batchable: bool = False


@dataclass(slots=True)
class Disposition(Composite):
    """The outcome of deliveries."""

    CODE: ClassVar = 0x15
    WIRE: ClassVar = (bool, UInt, UInt, bool, object, bool)

    role: bool = required()
    first: int = required()
    last: int | None = None
    settled: bool = False
    state: "Value | Rejected" = None
    batchable: bool = False


@dataclass(slots=True)
class Rejected(Composite):
    """The outcome of a delivery that was refused."""

    CODE: ClassVar = 0x25
    WIRE: ClassVar = (AmqpError,)

    error: AmqpError | Described | None = None


ACCEPTED: Final = Described(ULong(0x24), [])
"""The outcome of a delivery that was stored."""


@dataclass(slots=True)
class Detach(Composite):
    """End a link (``closed``), or suspend it."""

    CODE: ClassVar = 0x16
    WIRE: ClassVar = (UInt, bool, AmqpError)

    handle: int = required()
    closed: bool = False
    error: AmqpError | Described | None = None


@dataclass(slots=True)
class End(Composite):
    """End a session."""

    CODE: ClassVar = 0x17
    WIRE: ClassVar = (AmqpError,)

    error: AmqpError | Described | None = None


@dataclass(slots=True)
class Close(Composite):
    """End a connection."""

    CODE: ClassVar = 0x18
    WIRE: ClassVar = (AmqpError,)

    error: AmqpError | Described | None = None


Performative: TypeAlias = (
    Open | Begin | Attach | Flow | Transfer | Disposition | Detach | End | Close
)

_BY_CODE: Final[dict[int, type[Performative]]] = {
    kind.CODE: kind
    for kind in (Open, Begin, Attach, Flow, Transfer, Disposition, Detach, End, Close)
}


def decode_performative(body: bytes) -> tuple[Performative, int]:
    """Decode a frame's performative; return it and the position of the payload.

    Raises:
        MalformedError: The body does not begin with a performative.
    """
    value, at = decode(body)
    if not isinstance(value, Described) or not isinstance(value.descriptor, int):
        raise MalformedError("a frame does not begin with a performative")
    kind = _BY_CODE.get(value.descriptor)
    if kind is None:
        raise MalformedError(f"no performative has the code 0x{value.descriptor:02x}")
    return kind.of_fields(value.value), at
