"""Receives PostgreSQL's notifications of changes in a group, by ``LISTEN`` on its own connection.

A notification makes a processor read the group's records at once. Processors also read them
periodically, so a lost notification only delays them.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from hashlib import md5
from typing import Final

import psycopg
from psycopg import AsyncConnection

from checkpointstores.postgres._session import as_store_error
from eventproc._base.logs import ConditionLogger, Logger
from eventproc._base.retries import Backoff, waits
from eventproc._base.tasks import end
from eventproc.models import ConsumerGroup

_BACKOFF: Final = Backoff(initial=timedelta(seconds=0.2), maximum=timedelta(seconds=10))


def digest_of(group: ConsumerGroup) -> str:
    """Return the digest that stands for a group in a notification, which has a limited length."""
    return md5("\x1f".join(group.key).encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class _Watcher:
    """A processor that waits for notifications."""

    group: str
    owner_id: str
    changed: Callable[[], object]

    def note(self, payload: str) -> None:
        """Call ``changed`` if the notification is for this owner, or for the whole group."""
        group, _, owner_id = payload.partition(" ")
        if group == self.group and owner_id in {"", self.owner_id}:
            self.changed()


class Changes:
    """Listens for all processors that use one store; connects again when the connection is lost."""

    def __init__(
        self, dsn: str, *, schema: str, place: str, is_own: Callable[[int], bool], log: Logger
    ) -> None:
        """*is_own* returns whether a backend process id is that of this store's own connection.

        The store ignores notifications of its own writes.
        """
        self._dsn = dsn
        self._schema = schema
        self._place = place
        self._is_own = is_own
        self._failure = ConditionLogger(
            log, "store_notifications_failed", "store_notifications_recovered"
        )
        self._watchers: set[_Watcher] = set()
        self._listening: asyncio.Task[None] | None = None

    async def watch(
        self, group: ConsumerGroup, owner_id: str, changed: Callable[[], object]
    ) -> None:
        """Call *changed* when another process changes records of this owner or group; never return.

        It is also called after each connect, because notifications before it were missed.
        """
        watcher = _Watcher(digest_of(group), owner_id, changed)
        self._watchers.add(watcher)
        listening = self._listening = self._listening or asyncio.create_task(self._listen())
        try:
            await asyncio.shield(listening)
        finally:
            self._watchers.discard(watcher)
            if not self._watchers:
                self._listening = None
                await end([listening])

    async def _listen(self) -> None:
        wait_s = waits(_BACKOFF)
        while True:
            try:
                async with await AsyncConnection.connect(self._dsn, autocommit=True) as connection:
                    await connection.execute(f'LISTEN "{self._schema}"'.encode())
                    self._failure.end()
                    self._notify_all()
                    async for notice in connection.notifies():
                        if not self._is_own(notice.pid):
                            for watcher in tuple(self._watchers):
                                watcher.note(notice.payload)
            except psycopg.Error as error:
                failure = as_store_error(error, self._place)
                self._failure.note(is_error=failure.is_final, error=str(failure))
            await asyncio.sleep(wait_s(max(self._failure.count, 1)))

    def _notify_all(self) -> None:
        for watcher in tuple(self._watchers):
            watcher.changed()
