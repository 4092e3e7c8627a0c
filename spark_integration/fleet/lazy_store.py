"""A checkpoint store that enters a context manager when it is opened.

A processor opens its store on the store thread's event loop, so a context manager that yields a
store has to be entered there, too.
"""

from contextlib import AbstractAsyncContextManager, AsyncExitStack

from eventproc.ports import CheckpointStore, ForwardingStore


class LazyStore(ForwardingStore):
    """Forwards to the store that a context manager yields. Can be opened once."""

    def __init__(self, manager: AbstractAsyncContextManager[CheckpointStore]) -> None:
        self._manager = manager
        self._stack = AsyncExitStack()

    async def open(self) -> None:
        """Enter the context manager."""
        self.store = await self._stack.enter_async_context(self._manager)

    async def close(self) -> None:
        """Exit the context manager."""
        await self._stack.aclose()

    def transactions(self) -> None:
        """Return ``None``: transactions are not supported, because the store does not exist yet."""
        return
