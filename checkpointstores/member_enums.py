"""Read the enum values in a stored member record.

A later version of eventproc may have written a value that this one does not know. It is read as the
default, so that a listing never fails, and the processor that wrote it counts as a live member.
"""

from enum import Enum
from functools import partial
from typing import Final, TypeVar

from eventproc.models import MemberStatus, OffsetFormat

EnumT = TypeVar("EnumT", bound=Enum)


def _read(default: EnumT, word: str) -> EnumT:
    try:
        return type(default)(word)
    except ValueError:
        return default


status_of: Final = partial(_read, MemberStatus.ACTIVE)
offset_format_of: Final = partial(_read, OffsetFormat.AMQP)
