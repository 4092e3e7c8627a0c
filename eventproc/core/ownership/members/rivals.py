"""Two processors with one ``owner_id``: which of them stays?

Rule: of two processors that both consider the id theirs, exactly one yields, whichever records
each of them read.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from eventproc.models import Member, MembershipSnapshot

OVERWRITES_MAX: Final = 3
"""How often two holders of one id may overwrite each other's record before one of them yields. A
processor that starts may write twice, if the outcome of its first write was unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rivals:
    """The other incarnations that this processor has met under its ``owner_id``."""

    displaced: frozenset[str] = frozenset()
    """Those whose record this processor replaced when it started."""

    met: frozenset[tuple[str, str | None]] = frozenset()
    """The incarnation and ETag of each member record of another one that this processor read."""

    met_at_s: float = float("-inf")
    """When it last read one, on this processor's clock."""

    def displacing(self, incarnation: str) -> "Rivals":
        """Note that this processor replaces another one's record."""
        return replace(self, displaced=self.displaced | {incarnation})

    def meeting(self, other: Member, now_s: float) -> "Rivals":
        """Note that the member record is *other*, of another incarnation."""
        return replace(self, met=self.met | {(other.incarnation, other.etag)}, met_at_s=now_s)

    def is_recent(self, now_s: float, expiration: timedelta) -> bool:
        """Whether another incarnation was met within the last expiration.

        A recent write under this id may then be the other's. Later it cannot be: an incarnation
        that yielded writes nothing more, and the ETags of its writes in flight are out of date.
        """
        return now_s - self.met_at_s < expiration.total_seconds()

    def must_yield(
        self,
        me: Member,
        other: Member,
        present: MembershipSnapshot,
        answer_within: timedelta | None,
        *,
        is_late: bool,
    ) -> bool:
        """Whether *other*, which the member record names, stays and this incarnation has to yield.

        It has to in four cases: *other* was there before this one; *other* wrote its record
        longer ago than *answer_within*, so its wait for an objection is over; this processor was
        silent for so long that the wait may be over although the record is newer (*is_late*); or
        both kept overwriting each other, and *other* has the higher incarnation.
        """
        if other.incarnation in self.displaced or is_late:
            return True
        written = other.last_modified
        if (
            written is not None
            and answer_within is not None
            and present.as_of - written > answer_within + present.resolution
        ):
            return True
        is_after = other.incarnation > me.incarnation
        write_count = sum(incarnation == other.incarnation for incarnation, _ in self.met)
        return is_after and write_count > OVERWRITES_MAX
