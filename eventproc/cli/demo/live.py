"""Show a demo: as a picture that is redrawn on a terminal, as lines of text elsewhere."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Generic, TextIO, TypeAlias, TypeVar

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What every demo shows at one moment."""

    elapsed_s: float
    """Seconds since the demo began."""

    headline: str
    """What is happening."""

    total: int
    """Events that the demo publishes in all."""

    published: int
    """Events that were published so far."""


Scene = TypeVar("Scene", bound=Progress)


class Picture(Generic[Scene]):
    """A picture that is redrawn in place."""

    def __init__(self, live: Live, draw: Callable[[Scene], RenderableType]) -> None:
        self._draw = draw
        self._live = live

    def print_line(self, line: str) -> None:
        """Show the line in place of the picture."""
        self._live.update(Text(f"{line} ..."), refresh=True)

    def show(self, scene: Scene) -> None:
        """Redraw the picture."""
        self._live.update(self._draw(scene), refresh=True)


class TextScreen(ABC, Generic[Scene]):
    """Lines of text: each new headline, the news, and a summary every ``interval_s``."""

    interval_s: ClassVar[float]
    """Seconds between two summaries, if the headline does not change."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._begun_s = time.monotonic()
        self._headline = ""
        self._printed_s = 0.0
        self._told: set[int] = set()

    def print_line(self, line: str) -> None:
        """Print the line, with the time since the beginning."""
        self._print(time.monotonic() - self._begun_s, line)

    def show(self, scene: Scene) -> None:
        """Print what has changed since the last scene."""
        if scene.headline != self._headline:
            self._headline = scene.headline
            self._printed_s = scene.elapsed_s
            self._print(scene.elapsed_s, scene.headline)
        for number, line in self._news(scene):
            if number not in self._told:
                self._told.add(number)
                self._print(scene.elapsed_s, f"  {line}")
        if scene.elapsed_s - self._printed_s >= self.interval_s:
            self._printed_s = scene.elapsed_s
            self._print(scene.elapsed_s, f"  {self._summary(scene)}")

    def _print(self, elapsed_s: float, line: str) -> None:
        print(f"{elapsed_s:6.1f} s  {line}", file=self._output, flush=True)

    def _news(self, scene: Scene) -> Iterable[tuple[int, str]]:  # noqa: ARG002 - for subclasses
        """Return lines that are printed at once; of those with the same number, the first one."""
        return ()

    @abstractmethod
    def _summary(self, scene: Scene) -> str:
        """Return the line that is printed every ``interval_s``."""


Screen: TypeAlias = Picture[Scene] | TextScreen[Scene]


@contextmanager
def open_screen(
    lines: Callable[[TextIO], TextScreen[Scene]],
    draw: Callable[[Scene], RenderableType],
    output: TextIO,
) -> Iterator[Screen[Scene]]:
    """Show a ``Picture`` on a terminal, which is removed at the end, and *lines* elsewhere."""
    console = Console(file=output)
    if console.is_terminal and not console.is_dumb_terminal:
        with Live(console=console, auto_refresh=False, transient=True) as live:
            yield Picture(live, draw)
    else:
        yield lines(output)
