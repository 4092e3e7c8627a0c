"""The words of a member record, as stored: each is the value of an enum's member.

A word that this version does not know was written by a later one. It is read as the default, so
that a listing never fails, and the processor that wrote it counts as a live member.
"""

from collections.abc import Mapping
from typing import Final

from eventproc.models import LeaseMode, MemberStatus, OffsetFormat

_STATUS_BY_WORD: Final[Mapping[str, MemberStatus]] = {each.value: each for each in MemberStatus}
_LEASE_MODE_BY_WORD: Final[Mapping[str, LeaseMode]] = {each.value: each for each in LeaseMode}
_OFFSET_FORMAT_BY_WORD: Final[Mapping[str, OffsetFormat]] = {
    each.value: each for each in OffsetFormat
}


def status_of(word: str) -> MemberStatus:
    """Return the status with this word; ``ACTIVE`` if there is none."""
    return _STATUS_BY_WORD.get(word, MemberStatus.ACTIVE)


def lease_mode_of(word: str) -> LeaseMode:
    """Return the lease mode with this word; ``PARTITION`` if there is none."""
    return _LEASE_MODE_BY_WORD.get(word, LeaseMode.PARTITION)


def offset_format_of(word: str) -> OffsetFormat:
    """Return the offset format with this word; ``AMQP`` if there is none."""
    return _OFFSET_FORMAT_BY_WORD.get(word, OffsetFormat.AMQP)
