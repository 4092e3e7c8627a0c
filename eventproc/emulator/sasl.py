"""The layer in which a client says who it is. We believe everybody. Pure.

http://docs.oasis-open.org/amqp/core/v1.0/os/amqp-core-security-v1.0-os.html#section-sasl
"""

from typing import Final

from eventproc.emulator.decoding import MalformedError, decode
from eventproc.emulator.encoding import encode
from eventproc.emulator.framing import SASL_FRAME, encode_frame
from eventproc.emulator.values import Array, Described, Symbol, UByte, ULong

MECHANISMS: Final = ("MSSBCBS", "PLAIN", "ANONYMOUS", "EXTERNAL")
"""What the service offers; the genuine clients take the first that they know."""

_MECHANISMS_CODE: Final = 0x40
_INIT_CODE: Final = 0x41
_OUTCOME_CODE: Final = 0x44
_SYMBOL_8: Final = 0xA3
_OK: Final = 0
_AUTH_FAILED: Final = 1


def mechanisms_frame() -> bytes:
    """What we offer, sent at once."""
    offered = Array(_SYMBOL_8, [Symbol(name) for name in MECHANISMS])
    return encode_frame(encode(Described(ULong(_MECHANISMS_CODE), [offered])), kind=SASL_FRAME)


def answer(body: bytes) -> tuple[bytes, bool]:
    """Answer the client's choice: (the frame to send, whether it may go on).

    Raises:
        MalformedError: The frame is no ``sasl-init``.
    """
    value, _ = decode(body)
    if (
        not isinstance(value, Described)
        or value.descriptor != _INIT_CODE
        or not isinstance(value.value, list)
        or not value.value
    ):
        raise MalformedError("sasl-init expected")
    accepted = value.value[0] in MECHANISMS
    code = UByte(_OK if accepted else _AUTH_FAILED)
    outcome = encode(Described(ULong(_OUTCOME_CODE), [code, None]))
    return encode_frame(outcome, kind=SASL_FRAME), accepted
