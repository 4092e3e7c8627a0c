"""Wraps the checkpoint store of a processor, so that only errors of eventproc come out of it.

Rule 1: any other exception counts as an unknown outcome: a read raises ``StoreError`` from it, and
a write reports ``UNKNOWN``. So a bug in an adapter, or an error of a client library that an adapter
does not translate, does not end the processor.
Rule 2: such an exception is logged once for each method, and again only after the method succeeded.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

from eventproc._base.logs import (
    ConditionLogger,
    Logger,
    error_text,
)
from eventproc._base.tasks import cancellation_kept, users_code
from eventproc.errors import ConfigurationError, StoreError
from eventproc.models import ConsumerGroup
from eventproc.ports import CheckpointStore, ForwardingStore

T = TypeVar("T")
P = ParamSpec("P")


class GuardedStore(ForwardingStore):
    """A checkpoint store that calls another one, and translates its unexpected exceptions.

    Each method is that of ``ForwardingStore``, which comes to ``forward`` here.
    """

    def __init__(self, store: CheckpointStore, log: Logger) -> None:
        super().__init__(store)
        self._name = type(store).__name__
        self._log = log
        self._failure_by_method: dict[str, ConditionLogger] = {}

    def __repr__(self) -> str:
        return repr(self.store)

    async def open(self) -> None:
        """Open the store; an unexpected exception becomes a ``StoreError``.

        Raises:
            ConfigurationError: another processor uses it.
        """
        self.store.reserve(self)
        try:
            await self.forward(CheckpointStore.open)
        except BaseException:
            self.store.give_back()
            raise

    async def close(self) -> None:
        """Close the store; an error is only logged."""
        try:
            await self.forward(CheckpointStore.close)
        except StoreError as error:
            self._log.warning("store_close_failed", error=str(error))
        finally:
            self.store.give_back()

    async def watch(
        self, group: ConsumerGroup, owner_id: str, changed: Callable[[], object]
    ) -> None:
        """Watch the store; an unexpected exception becomes a ``StoreError``."""
        await self.forward(CheckpointStore.watch, group, owner_id, changed)

    async def forward(
        self,
        method: Callable[Concatenate[Any, P], Awaitable[T]],
        *args: P.args,
        **options: P.kwargs,
    ) -> T:
        """Call the store; raise only ``StoreError`` and ``ConfigurationError``."""
        name = method.__name__
        try:
            with cancellation_kept(), users_code():
                answer: T = await getattr(self.store, name)(*args, **options)
        except (StoreError, ConfigurationError):
            raise
        except Exception as error:  # noqa: BLE001 - the one place around the user's store
            self._refuse(name, error)
        if name in self._failure_by_method:
            self._failure_by_method[name].end(call=name)
        return answer

    def _refuse(self, name: str, error: BaseException) -> NoReturn:
        translated = StoreError(
            f"{self._name}.{name} raised {error_text(error)}, which no checkpoint store may raise: "
            "raise one of the errors of eventproc.errors instead (StoreUnavailableError: no answer)"
        )
        failure = self._failure_by_method.setdefault(
            name, ConditionLogger(self._log, "store_call_failed", "store_call_recovered")
        )
        failure.note(is_error=True, call=name, error=error_text(error), exc_info=error)
        raise translated from error
