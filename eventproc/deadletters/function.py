"""Dead letters into a function of the user's: a table, a queue, a ticket."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self

from eventproc.deadletter import DeadLetter
from eventproc.errors import DeadLetterError
from eventproc.logs import shown
from eventproc.ports import DeadLetterSink


class FunctionDeadLetterSink(DeadLetterSink):
    """Awaits a function with each letter. When that returns, the letter counts as stored.

    Whatever the function raises means that it is not stored, and it is called again.
    """

    def __init__(self, function: Callable[[DeadLetter], Awaitable[None]]) -> None:
        self._function = function

    @classmethod
    def blocking(cls, function: Callable[[DeadLetter], None]) -> Self:
        """The same with an ordinary function, which is called in another thread."""

        async def take(letter: DeadLetter) -> None:
            await asyncio.to_thread(function, letter)

        return cls(take)

    async def open(self) -> None:
        """Nothing to connect to."""

    async def close(self) -> None:
        """Nothing to let go of."""

    async def store(self, letter: DeadLetter) -> None:
        """Await the function."""
        try:
            await self._function(letter)
        except Exception as error:
            raise DeadLetterError(
                f"the function for dead letters failed: {shown(error)}"
            ) from error
