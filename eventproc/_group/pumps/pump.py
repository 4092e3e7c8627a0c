"""The interface between a group's leases and the work that they permit.

A *pump* runs while one lease is held. The run of a processor starts and ends pumps; it does not
know what they do. ``Work`` says what a group shares, and makes the pumps: for the partitions of a
hub in ``_runtime/partitions.py``, for named resources in ``_group/resources/work.py``.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from eventproc._core.ownership.pauses import Pause
from eventproc._core.placement.loads import WorkDone
from eventproc._group.pumps.stop_scope import StopScope
from eventproc.models import CloseReason, Member
from eventproc.models._statistics import Counters

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The lease that a pump runs under, as the pump sees it."""

    name: str
    """The partition, or the resource."""

    epoch: int
    """The fencing token of the lease."""

    member: Member
    """The processor, with the incarnation that was drawn at its start."""

    stop: StopScope
    """Knows for how long the lease may be trusted, and ends the pump's waits and calls."""

    verify: Callable[[], Awaitable[bool]]
    """Renews the lease; whether it is still held. Raises ``StoreError`` if that is not known."""

    ready: Callable[[], Awaitable[None]]
    """Returns when the handler may be called: its preparation, if it had one, has ended."""

    call: "StoreCall"
    """Runs a coroutine of the store where the store belongs, and returns its result."""

    is_forced: bool = False
    """Whether to try once what the failure policy gave up."""


class StoreCall(Protocol):
    """Runs a coroutine on the store's event loop, whatever it returns."""

    async def __call__(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return the coroutine's result, or raise its error."""


class Pump(Protocol):
    """What runs while a lease is held. All methods are called on the processor's event loop."""

    @property
    def counters(self) -> Counters:
        """The live counters; they change while the pump runs."""

    @property
    def work(self) -> WorkDone:
        """How much work was done until now."""

    @property
    def is_lost(self) -> bool:
        """Whether ``lose`` was called."""

    @property
    def is_paused(self) -> bool:
        """Whether ``pause`` was called, and ``resume`` not since."""

    @property
    def has_unstored_progress(self) -> bool:
        """Whether something would be done again if the process died now."""

    async def run(self) -> CloseReason:
        """Work until ``end``, ``lose`` or an error; return why it ended."""

    def end(self, reason: CloseReason, *, within: timedelta | None = None) -> None:
        """Stop gracefully, within this time; by default within the shutdown time-out."""

    def lose(self) -> None:
        """End at once: another processor has the lease."""

    def pause(self) -> None:
        """Begin nothing new until ``resume``."""

    def resume(self) -> None:
        """End a pause that ``pause`` began."""

    def follow(self, pause: Pause | None) -> None:
        """Begin nothing new while the group pauses the partition, whatever ``resume`` does."""


PumpT = TypeVar("PumpT", bound=Pump)
PumpT_co = TypeVar("PumpT_co", bound=Pump, covariant=True)


class MakePump(Protocol[PumpT_co]):
    """Makes the pump of a partition or a resource."""

    def __call__(self, name: str, /, *, is_forced: bool) -> PumpT_co:
        """Make one; *is_forced*: whether to try once what the failure policy gave up."""


class Preparable(Protocol):
    """A handler that can be made ready before it serves."""

    def prepare(self, name: str, /) -> Any:  # noqa: ANN401 - a coroutine, or nothing
        """Make ready."""

    def discard(self, name: str, /) -> Any:  # noqa: ANN401
        """Undo ``prepare``."""


class Opening(Protocol):
    """Collects what is open, to close it in reverse order."""

    def push(self, part: str, close: Callable[[], Awaitable[None]]) -> None:
        """Note a part that was opened, by its name in the log."""


class Work(ABC, Generic[PumpT]):
    """What the members of a group share among them."""

    handler_kinds: ClassVar[tuple[type[Preparable], type[Preparable]]]
    """The base classes of handlers: with coroutines, and blocking."""

    names_interval: timedelta
    """The time between two calls of ``names``."""

    def check(self) -> None:
        """Check the settings, at each start, before anything is opened.

        Raises:
            ConfigurationError: the message names the remedy.
        """

    @abstractmethod
    async def open(self, opening: Opening) -> None:
        """Open connections, and check that the work can be done; note each in *opening*."""

    @abstractmethod
    async def names(self) -> Sequence[str]:
        """Read the partitions or resources that exist now.

        Raises:
            SourceError: they could not be read; try again.
        """

    @abstractmethod
    def make_handler(self) -> Preparable:
        """Return a handler, to serve or to be prepared."""

    @abstractmethod
    def make_pump(self, grant: Grant, handler: Any) -> PumpT:  # noqa: ANN401 - of its own kind
        """Return a pump that runs under this lease, with a handler that ``make_handler`` made."""

    @abstractmethod
    def display_name(self, name: str) -> str:
        """Return the user's name for what has this name in the store."""
