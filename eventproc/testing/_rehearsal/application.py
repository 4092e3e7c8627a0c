"""The user's program: imported afresh for each simulated process, without threads and sockets."""

import datetime as dt
import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType, ModuleType
from typing import Any, Final, cast

from eventproc._delivery.handler import BlockingPartitionHandler, HandlerFactory, PartitionHandler
from eventproc.errors import ConfigurationError
from eventproc.testing._rehearsal.fakes import Fake, Stage

CLOCKS: Final[Mapping[object, Sequence[str]]] = {
    time: (
        *("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"),
        "sleep",
    ),
    dt.datetime: ("now", "utcnow", "today"),
    dt.date: ("today",),
}

THREAD: Final = "_thread.start_new_thread"

REFUSED: Final = {
    THREAD: (
        "starts a thread, which no rehearsal can order: await instead, or declare what starts it "
        "as a Ledger"
    ),
    "subprocess.Popen": "starts a process: declare what starts it as a Ledger",
} | dict.fromkeys(
    ("socket.connect", "socket.getaddrinfo", "socket.bind", "socket.sendto"),
    "uses a real socket: declare its client as a Ledger, such as Ledger('shop:client')",
)
"""What a rehearsal refuses, by the names of Python's audit events."""

USES_CLOCK: Final = (
    "uses {}, which is real time: take the event's enqueued_time, wait by asyncio.sleep(), or "
    "declare it as Clock('{}')"
)


class Refused(ConfigurationError):  # noqa: N818 - the plain name
    """The handler does what no rehearsal can repeat."""


class View:
    """A shared module as one process sees it: with some of its names replaced."""

    def __init__(self, module: object, replaced: dict[str, object]) -> None:
        self._module = module
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> object:
        return getattr(self._module, name)


class Application:
    """The program around a handler."""

    def __init__(self, handler: str | Callable[..., object]) -> None:
        """*handler*: ``shop:Orders``, or the class itself if its module can be imported."""
        if not isinstance(handler, str):
            module, name = getattr(handler, "__module__", ""), getattr(handler, "__qualname__", "")
            if module == "__main__" or "<" in name or not name:
                raise ConfigurationError(
                    f"{name or handler!r} cannot be imported afresh for each process: put it into "
                    "a module and name it as shop:Orders"
                )
            handler = f"{module}:{name}"
        self.name: str = handler
        self._module_name, colon, self._place = self.name.partition(":")
        if not colon:
            raise ConfigurationError(f"{self.name!r} names no handler: give it as shop:Orders")
        self._package = self._module_name.partition(".")[0]
        importlib.import_module(self._module_name)
        self._files: set[str] = set()
        self._refused: Refused | None = None

    def make(self, fakes: Sequence[Fake], stage: Stage, owner_id: str) -> HandlerFactory:
        """Import the program for one process, put the fakes into it; return what makes handlers."""
        modules = self._import()
        for module in modules.values():
            self._guard(module)
        arguments: dict[str, object] = {}
        for fake in fakes:
            if ":" in fake.target:
                _replace(modules, fake, partial(fake.bind, stage, owner_id))
            else:
                arguments[fake.target] = fake.bind(stage, owner_id, None)
        handler = cast("Callable[..., Any]", modules[self._module_name])
        for part in self._place.split("."):
            handler = getattr(handler, part)

        def factory() -> PartitionHandler:
            made = handler(**arguments)
            if isinstance(made, BlockingPartitionHandler):
                raise self._refusal(
                    f"{self.name} is a BlockingPartitionHandler, which runs in threads, and no "
                    "rehearsal can order them: make it a PartitionHandler, or try it with "
                    "HandlerTestHarness"
                )
            return cast("PartitionHandler", made)

        return factory

    def _import(self) -> Mapping[str, ModuleType]:
        """Import the modules of the program's package again; return them."""

        def present() -> dict[str, ModuleType]:
            names = [n for n in sys.modules if f"{n}.".startswith(f"{self._package}.")]
            return {name: sys.modules.pop(name) for name in names}

        before = present()
        try:
            importlib.import_module(self._module_name)
        finally:
            fresh = present()
            sys.modules.update(before)
        self._files |= {str(getattr(module, "__file__", "")) for module in fresh.values()}
        return fresh

    # What is refused.

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Refuse threads and sockets while the block runs; raise what was refused at its end."""
        global _watching  # noqa: PLW0603 - a hook for audit events cannot be removed
        if not _hooked:
            sys.addaudithook(_audit)
            _hooked.append(True)
        before, _watching = _watching, (threading.get_ident(), self._audit)
        start = threading.Thread.start

        def audited(thread: threading.Thread) -> None:
            _audit(THREAD, ())  # Python 3.11 does not do so, and 3.13 by another name.
            start(thread)

        threading.Thread.start = audited  # type: ignore[method-assign, assignment]
        self._refused = None
        try:
            yield
        finally:
            threading.Thread.start = start  # type: ignore[method-assign]
            _watching = before
            if self._refused is not None:
                raise self._refused from None

    @property
    def is_refused(self) -> bool:
        """Whether something was refused, so that the rehearsal is in vain."""
        return self._refused is not None

    def refuse_threads(self, *_: object) -> Any:  # noqa: ANN401 - it never returns
        """Stand in place of ``run_in_executor``."""
        self._audit(THREAD)

    def _audit(self, event: str) -> None:
        frame: FrameType | None = sys._getframe()  # noqa: SLF001 - documented
        while frame is not None and frame.f_code.co_filename not in self._files:
            frame = frame.f_back
        if frame is not None:
            where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            raise self._refusal(f"{frame.f_code.co_qualname} ({where}) {REFUSED.get(event, event)}")

    def _refusal(self, what: str) -> Refused:
        self._refused = self._refused or Refused(what)
        return self._refused

    def _guard(self, module: ModuleType) -> None:
        """Replace what reads a real clock among the names of a module."""

        def refusing(name: str, place: str) -> Callable[..., object]:
            return lambda *_, **__: self._audit(USES_CLOCK.format(name, place))

        for name, value in list(vars(module).items()):
            place = f"{module.__name__}:{name}"
            if isinstance(value, type) and value in CLOCKS:
                vars(module)[name] = _guarded(value, place, refusing)
            elif value is time:
                names = CLOCKS[time]
                refusals = {n: refusing(f"time.{n}()", f"{place}.{n}") for n in names}
                vars(module)[name] = View(time, dict(refusals))
            elif value is dt:
                kinds = (dt.datetime, dt.date)
                guarded = {
                    k.__name__: _guarded(k, f"{place}.{k.__name__}", refusing) for k in kinds
                }
                vars(module)[name] = View(dt, dict(guarded))
            elif getattr(value, "__module__", "") == "time" and value.__name__ in CLOCKS[time]:
                vars(module)[name] = refusing(f"time.{value.__name__}()", place)


class _AnyDate(type):
    """The type of a guarded date: every date is an instance of it."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])


def _guarded(kind: type, place: str, refusing: Callable[[str, str], Any]) -> type:
    """Return a class of dates that does not read the clock."""
    names = {
        name: staticmethod(refusing(f"{kind.__name__}.{name}()", f"{place}.{name}"))
        for name in CLOCKS[kind]
    }
    return _AnyDate(kind.__name__, (kind,), names)


def _replace(
    modules: Mapping[str, ModuleType], fake: Fake, bound: Callable[[object], object]
) -> None:
    """Put a fake in the place that it names; a module of others gets a view of it."""
    module_name, _, path = fake.target.partition(":")
    owner: Any = modules.get(module_name)
    if owner is None:
        raise ConfigurationError(
            f"{fake.target!r} names the module {module_name!r}, which the handler's does not "
            f"import from its own package: name it where it is used, as {min(modules)}:{fake.name}"
        )
    *parts, name = path.split(".")
    try:
        for part in parts:
            found = getattr(owner, part)
            if isinstance(found, ModuleType) and found not in modules.values():
                found = View(found, {})
            setattr(owner, part, found)
            owner = found
        setattr(owner, name, bound(getattr(owner, name)))
    except AttributeError:
        raise ConfigurationError(
            f"{fake.target!r} is not there to be replaced: {module_name} has "
            f"{', '.join(n for n in vars(modules[module_name]) if not n.startswith('_'))}"
        ) from None


_hooked: list[bool] = []
_watching: tuple[int, Callable[[str], None]] | None = None


def _audit(event: str, _: tuple[object, ...]) -> None:
    if _watching is not None and event in REFUSED and threading.get_ident() == _watching[0]:
        _watching[1](event)
