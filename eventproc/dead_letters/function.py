"""A sink that calls a function with each dead letter, for example to write to a table or queue."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self

from eventproc.errors import DeadLetterError
from eventproc.logs import shown
from eventproc.models import DeadLetter
from eventproc.ports import DeadLetterSink
from eventproc.settings import checked


class FunctionDeadLetterSink(DeadLetterSink):
    """Awaits a function with each dead letter. The letter is stored when the function returns.

    If the function raises, the letter is not stored, and the function is called again later.
    """

    @checked
    def __init__(self, function: Callable[[DeadLetter], Awaitable[None]]) -> None:
        self._function = function

    @classmethod
    def blocking(cls, function: Callable[[DeadLetter], None]) -> Self:
        """Build a sink from an ordinary function, which is called in another thread."""

        async def take(letter: DeadLetter) -> None:
            await asyncio.to_thread(function, letter)

        return cls(take)

    async def store(self, letter: DeadLetter) -> None:
        """Await the function with the letter.

        Raises:
            DeadLetterError: the function raised.
        """
        try:
            await self._function(letter)
        except Exception as error:
            raise DeadLetterError(
                f"the function for dead letters failed: {shown(error)}"
            ) from error
