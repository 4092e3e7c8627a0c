"""Warn if processors keep a group's records under another spelling of its names.

Such processors read the same hub without seeing this group's records, so each event is handled
twice.
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from checkpointstores.blob import _layout as layout
from checkpointstores.blob._container import BlobItem, Listing
from eventproc._base.logs import Logger
from eventproc.errors import StoreError
from eventproc.models import ConsumerGroup

CHECK_EVERY_S: Final = 300.0
"""Seconds between two checks. Such processors may start at any time, but a listing costs as much as
a write."""


_QUERY: Final = {"exact_names": "names=exact"}
"""How the command line spells a setting, where it differs."""


class SpellingWatch:
    """Checks for records of a group in another case, or with another port."""

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
        self._due_at_s: dict[str, float] = {}
        self._logged: dict[str, set[str]] = {}

    async def check(self, group: ConsumerGroup, home: str) -> None:
        """Check if it is due, and log each other spelling than *home* once, while it exists."""
        if self._clock() < self._due_at_s.get(home, 0.0):
            return
        self._due_at_s[home] = self._clock() + CHECK_EVERY_S
        with suppress(StoreError):  # the listing that follows raises it
            others = {}
            for prefix in sorted(layout.other_spelling_prefixes(group, home)):
                for item in (await self._list_below(prefix)).items:
                    other, kind, _ = layout.record_of(item.name, group) or (home, "", "")
                    is_owned = layout.owner_in(item.metadata)[0] is not None
                    if kind == "ownership" and is_owned and other != home:
                        others[other] = item
            for other in sorted(others.keys() - self._logged.get(home, set())):
                self._log_other(group, home, other, others[other])
            self._logged[home] = set(others)

    def _log_other(self, group: ConsumerGroup, home: str, other: str, found: BlobItem) -> None:
        settings = layout.settings_to_share(group, other)
        arguments = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        query = "&".join(_QUERY.get(name, f"{name}={value}") for name, value in settings.items())
        self._log.warning(
            "group_spelled_otherwise",
            namespace=home.partition("/")[0],
            other_namespace=other.partition("/")[0],
            blob=found.name,
            last_modified=found.last_modified.isoformat(),
            remedy=f"give BlobCheckpointStore({arguments}), or on the command line "
            f"--store 'blob:CONTAINER{query and '?'}{query}', to share the group with them; if "
            "they have stopped for good, delete their blobs",
        )
