"""Warn if processors keep a group's records under another spelling of the namespace.

Such processors read the same hub without seeing this group's records, so each event is handled
twice.
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from checkpointstores.blob import _layout as layout
from checkpointstores.blob._container import Listing
from eventproc._base.logs import Logger
from eventproc.errors import StoreError
from eventproc.models import ConsumerGroup

CHECK_EVERY_S: Final = 300.0
"""Seconds between two checks. Such processors may start at any time, but a listing costs as much as
a write."""


class SpellingWatch:
    """Checks for records of a group whose namespace is spelled with or without a port."""

    def __init__(
        self,
        list_below: Callable[[str], Awaitable[Listing]],
        log: Logger,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """*list_below* lists the blobs whose names begin with a prefix."""
        self._list_below = list_below
        self._log = log
        self._clock = clock
        self._due_at_s: dict[tuple[str, str, str], float] = {}
        self._logged: dict[tuple[str, str, str], set[str]] = {}

    async def check(self, group: ConsumerGroup) -> None:
        """Check if it is due, and log each other spelling once for as long as it exists."""
        if self._clock() < self._due_at_s.get(group.key, 0.0):
            return
        self._due_at_s[group.key] = self._clock() + CHECK_EVERY_S
        with suppress(StoreError):  # the listing that follows raises it
            listing = await self._list_below(layout.other_spelling_prefix(group))
            others = {
                name: item
                for item in listing.items
                if layout.owner_in(item.metadata)[0] is not None
                and (name := layout.namespace_of(group, item.name)) is not None
            }
            for name in sorted(others.keys() - self._logged.get(group.key, set())):
                self._log.warning(
                    "group_spelled_otherwise",
                    namespace=group.key[0],
                    other_namespace=name,
                    blob=others[name].name,
                    last_modified=others[name].last_modified.isoformat(),
                    remedy=f"give BlobCheckpointStore(namespace={name!r}), or on the command line "
                    f"--store blob:CONTAINER?namespace={name}, to share the group with them; if "
                    "they have stopped for good, delete their blobs",
                )
            self._logged[group.key] = set(others)
