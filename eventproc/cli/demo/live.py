"""Where a demo is shown: in a picture that moves, on a terminal, and in lines anywhere else."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Self, TextIO, TypeVar

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

Scene = TypeVar("Scene")


class Screen(ABC, Generic[Scene]):
    """Where the demo is shown, as a context manager."""

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End; leave the terminal as it was."""
        return

    @abstractmethod
    def tell(self, line: str) -> None:
        """Say what is being done, before there is anything to see."""

    @abstractmethod
    def show(self, scene: Scene) -> None:
        """Show how everything is now."""


class Picture(Screen[Scene]):
    """Drawn in place, again and again."""

    def __init__(self, console: Console, draw: Callable[[Scene], RenderableType]) -> None:
        self._draw = draw
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        """Begin to draw."""
        self._live.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Take the picture away."""
        self._live.stop()

    def tell(self, line: str) -> None:
        """Show it alone."""
        self._live.update(Text(f"{line} ..."), refresh=True)

    def show(self, scene: Scene) -> None:
        """Redraw."""
        self._live.update(self._draw(scene), refresh=True)


def open_screen(
    lines: Callable[[TextIO], Screen[Scene]],
    draw: Callable[[Scene], RenderableType],
    output: TextIO | None = None,
) -> Screen[Scene]:
    """Return a picture on a terminal, lines elsewhere."""
    console = Console(file=output)
    if console.is_terminal and not console.is_dumb_terminal:
        return Picture(console, draw)
    return lines(output or sys.stdout)
