"""Fakes of what a handler changes or reads outside of itself."""

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Generator, Iterator, Mapping
from typing import Any, Final, Protocol, Self

READS: Final = ("get", "head", "options", "close", "aclose")
"""Methods of clients that change nothing."""


class Stage(Protocol):
    """What a fake needs of the rehearsal in which it plays."""

    repeated: set[object]
    """The keys of the requests that were carried out by receivers that recognise repeats."""

    tables: dict[str, Any]
    """The databases, by the target of their fake."""

    def now_s(self) -> float:
        """Return the seconds of virtual time."""

    def steps(
        self, owner_id: str, name: str, carry_out: Callable[[], None]
    ) -> Generator[float, None, None]:
        """Yield the seconds to wait during a request, which may fail at any of these steps."""

    def happened(self, owner_id: str, effect: str) -> None:
        """Record an effect."""

    def add(self, owner_id: str, what: str) -> None:
        """Add a line to the history."""


class Fake(ABC):
    """Stands for something outside of the handler, in each simulated process."""

    def __init__(self, target: str) -> None:
        """Name what is replaced.

        ``shop:charge`` is ``charge`` in the module ``shop``: a function, a client or a class of
        clients, also ``shop:httpx.AsyncClient``. ``payments``, without a module, is an argument of
        the handler's constructor.
        """
        self.target = target
        self.name = target.rpartition(":")[2]

    @abstractmethod
    def bind(self, stage: Stage, owner_id: str, original: object) -> object:
        """Return what stands in place of the original in one simulated process."""


class Ledger(Fake):
    """Records each call of a function, or of any method of a client, as an effect.

        Ledger("shop:charge")
        Ledger("shop:client", answer=lambda *args, **options: httpx.Response(200))

    Args:
        target: What it replaces: ``module:name``, or the name of a constructor's argument.
        key: Gets the arguments of a call, and returns what identifies the effect. By default all
            of the arguments do. A list stands for an effect for each of its items.
        answer: Gets the arguments of a call, and returns its result.
        idempotent_by: The keyword argument, or the header among ``headers``, by which the receiver
            recognises a request that it has carried out before, and does nothing.
        ignored: Methods that are no effects.
    """

    def __init__(
        self,
        target: str,
        *,
        key: Callable[..., object] | None = None,
        answer: Callable[..., object] = lambda *_, **__: None,
        idempotent_by: str = "",
        ignored: Collection[str] = READS,
    ) -> None:
        super().__init__(target)
        self.key, self.answer = key, answer
        self.idempotent_by, self.ignored = idempotent_by, ignored

    def bind(self, stage: Stage, owner_id: str, original: object) -> object:
        """Return a function or client that records."""
        return _Recorder(self, stage, owner_id, self.name.rpartition(".")[2], original)


class _Recorder:
    """Stands for a function, a client or a class in one simulated process."""

    def __init__(
        self, ledger: Ledger, stage: Stage, owner_id: str, name: str, original: object
    ) -> None:
        self._ledger, self._stage, self._owner_id = ledger, stage, owner_id
        self._name, self._original = name, original

    def __getattr__(self, name: str) -> "_Recorder":
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._original, name, None)
        return _Recorder(self._ledger, self._stage, self._owner_id, f"{self._name}.{name}", found)

    def __call__(self, *args: object, **options: object) -> object:
        if isinstance(self._original, type):
            return self
        request = self._steps(args, options)
        if _is_blocking(self._original):
            for _ in request:
                pass
            return self._ledger.answer(*args, **options)
        return _Request(wait(request, lambda: self._ledger.answer(*args, **options)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    def _steps(self, args: tuple[object, ...], options: Mapping[str, Any]) -> Iterator[float]:
        """Yield the seconds to wait during one call."""
        ledger, stage = self._ledger, self._stage
        texts = [*map(repr, args), *(f"{name}={value!r}" for name, value in options.items())]
        effects = [f"{self._name}({', '.join(texts)})"]
        if ledger.key is not None:
            key = ledger.key(*args, **options)
            items = key if isinstance(key, list) else [key]
            effects = [f"{self._name}: {item!r}" for item in items]
        names = {**(options.get("headers") or {}), **options} if ledger.idempotent_by else {}
        repeat = names.get(ledger.idempotent_by)

        def carry_out() -> None:
            if repeat is not None and (ledger.target, repeat) in stage.repeated:
                for effect in effects:
                    stage.add(self._owner_id, f"{effect}, taken for a repetition of {repeat!r}")
                return
            stage.repeated.add((ledger.target, repeat))
            for effect in effects:
                stage.happened(self._owner_id, effect)

        if self._name.rpartition(".")[2] in ledger.ignored:
            return iter(())
        return stage.steps(self._owner_id, self._name, carry_out)


class Clock(Fake):
    """Gives a handler the time of the rehearsal, in place of ``time.time`` or a function of yours.

    Clock("shop:time.time")

    Args:
        target: What it replaces: ``module:name``, or the name of a constructor's argument.
        of: Makes the value from the seconds of virtual time.
    """

    def __init__(self, target: str, of: Callable[[float], object] = lambda now_s: now_s) -> None:
        super().__init__(target)
        self._of = of

    def bind(self, stage: Stage, owner_id: str, original: object) -> object:  # noqa: ARG002
        """Return a function that returns the time."""
        return lambda: self._of(stage.now_s())


class _Request(Coroutine[Any, Any, object]):
    """A request under way: to be awaited, or entered as aiohttp's are."""

    def __init__(self, coroutine: Coroutine[Any, Any, object]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, object]:
        return self._coroutine.__await__()

    def send(self, value: object) -> object:
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> object:  # noqa: ANN401 - as a coroutine's
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()

    async def __aenter__(self) -> object:
        return await self._coroutine

    async def __aexit__(self, *_: object) -> None:
        return None


async def wait(steps: Iterator[float], answer: Callable[[], object]) -> object:
    """Go through the steps of a request, and return its answer."""
    for seconds in steps:
        await asyncio.sleep(seconds)
    return answer()


def _is_blocking(original: object) -> bool:
    """Whether it is an ordinary function, which does not return something to await or enter."""
    if not inspect.isroutine(original) or inspect.iscoroutinefunction(original):
        return False
    returned = str(getattr(original, "__annotations__", {}).get("return"))
    return not any(word in returned for word in ("Context", "Awaitable", "Coroutine", "Future"))
