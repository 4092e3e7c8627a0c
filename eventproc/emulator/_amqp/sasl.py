"""The SASL layer, in which a client authenticates. Pure.

A client that chooses one of the offered mechanisms is accepted with any credentials; every other
mechanism is refused.

http://docs.oasis-open.org/amqp/core/v1.0/os/amqp-core-security-v1.0-os.html#section-sasl
"""

from typing import Final

from eventproc._base.amqp import MalformedError
from eventproc.emulator._amqp.encoding import encode
from eventproc.emulator._amqp.framing import SASL_FRAME, encode_frame
from eventproc.emulator._amqp.values import Array, Described, Symbol, UByte, ULong, decode

MECHANISMS: Final = ("MSSBCBS", "PLAIN", "ANONYMOUS", "EXTERNAL")
"""The mechanisms of the service; the Azure SDKs take the first that they know."""

_MECHANISMS_CODE: Final = 0x40
_INIT_CODE: Final = 0x41
_OUTCOME_CODE: Final = 0x44
_SYMBOL_8: Final = 0xA3
_OK: Final = 0
_AUTH_FAILED: Final = 1


def mechanisms_frame() -> bytes:
    """Encode the list of mechanisms, which is sent first."""
    offered = Array(_SYMBOL_8, [Symbol(name) for name in MECHANISMS])
    return encode_frame(encode(Described(ULong(_MECHANISMS_CODE), [offered])), kind=SASL_FRAME)


def answer(body: bytes) -> tuple[bytes, bool]:
    """Return the answer to the client's choice, and whether it is accepted.

    Raises:
        MalformedError: The frame is not a ``sasl-init``.
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
