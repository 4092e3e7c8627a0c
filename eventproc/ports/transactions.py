"""The interface of a store that can commit a checkpoint together with a user's own writes."""

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

from eventproc.concurrency.resource import AsyncResource
from eventproc.models import CheckpointResult, CheckpointUpdate, ConsumerGroup


class Transaction(ABC):
    """A transaction that a handler writes in. It is rolled back unless ``commit`` succeeds."""

    db: Any
    """The connection, for the handler's statements. Its kind depends on the store."""

    @property
    @abstractmethod
    def is_broken(self) -> bool:
        """Whether the connection is lost, so that nothing of the transaction can be committed."""

    @abstractmethod
    async def commit(self, group: ConsumerGroup, update: CheckpointUpdate) -> CheckpointResult:
        """Write the checkpoint and commit, if ``update.replaces`` is still what is stored.

        ``LOST``: another processor wrote the checkpoint, and everything is rolled back.
        ``UNKNOWN``: no answer; all of it is committed, or nothing.

        Raises:
            Exception: an error of the database about the handler's own writes, found at the commit;
                everything is rolled back.
        """


class Transactions(AsyncResource):
    """Begins transactions for the handlers of one processor, on the event loop that opened it.

    That is the handlers' loop; the store itself belongs to another one.
    """

    is_exclusive: bool = False
    """Whether nothing else can write to the store while a transaction is open."""

    @abstractmethod
    def begin(
        self, *, is_blocking: bool, idle_max: timedelta
    ) -> AbstractAsyncContextManager[Transaction]:
        """Return a block in which a transaction is open.

        Args:
            is_blocking: Whether ``db`` is used by ordinary functions, in another thread.
            idle_max: The server ends a transaction that has no statement for so long, so that a
                frozen process does not keep its locks.

        Raises:
            StoreError: the store did not answer, or refused.
        """
