"""Computes which deliveries of a link to acknowledge. Pure.

Rule 1: each delivery is acknowledged once, because the broker closes a channel that repeats one.
Rule 2: a delivery tag is the number of a delivery on its link, from 1 on.
"""

from collections.abc import Sequence

from eventproc.models import SequenceRange


class Settled:
    """The sequence numbers that are settled: all up to one, and some above it."""

    def __init__(self, first: int) -> None:
        """*first* is the sequence number of the link's first delivery; nothing is settled yet."""
        self._first = first
        self._through = first - 1
        self._above: set[int] = set()

    def add(
        self, sequence_number: int, completed: Sequence[SequenceRange]
    ) -> tuple[int | None, list[int]]:
        """Settle all up to *sequence_number*, and the ranges; return delivery tags to acknowledge.

        The first one acknowledges all deliveries up to it, and is ``None`` if there is no new one.
        Those in the list are acknowledged one by one, before the first.
        """
        alone = [
            number
            for done in completed
            for number in range(max(done.first, self._first), done.last + 1)
            if number not in self._above
        ]
        self._above.update(alone)
        newest = sequence_number
        while newest in self._above:  # The broker refuses a tag that is acknowledged already.
            newest -= 1
        through = newest - self._first + 1 if newest > self._through else None
        self._through = max(self._through, sequence_number)
        self._above = {number for number in self._above if number > self._through}
        return through, [number - self._first + 1 for number in alone]
