"""A base class of objects that an ``async with`` block opens and closes."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class AsyncResource(ABC):
    """Base of classes with ``open`` and ``close``; an ``async with`` block calls both."""

    @abstractmethod
    async def open(self) -> None:
        """Open."""

    @abstractmethod
    async def close(self) -> None:
        """Close."""

    async def __aenter__(self) -> Self:
        """Open."""
        await self.open()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()
