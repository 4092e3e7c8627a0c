"""A call of ``receive`` of the client for threads."""

import asyncio
from typing import Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential

from eventproc._base.tasks import to_the_end
from eventproc.compat._caller import ThreadCaller
from eventproc.compat._handler import Callbacks
from eventproc.compat._receive import Receive, callbacks_of
from eventproc.compat._settings import ClientSettings
from eventproc.compat._threads_client import _Call


def call_of(callbacks: Callbacks) -> _Call:
    """A call that was not begun."""
    key = AzureNamedKeyCredential("name", "key")
    settings = ClientSettings("namespace", "hub", "$Default", key, {})
    return _Call(settings, Receive.of({}), callbacks)


def test_the_thread_of_the_event_loop_ends_with_the_call():
    """A program may receive again and again."""
    caller = ThreadCaller()
    call = call_of(callbacks_of(print, {}, caller, takes_batches=False))
    call.close()
    call.run(caller)

    assert call._loop.is_closed


class FakeReceiving:
    """Has one event for the callbacks; at the close it closes its partition, and releases it.

    As a processor, it waits for a callback to its end also if it is cancelled.
    """

    def __init__(self, callbacks: Callbacks) -> None:
        self.is_released = False
        self._callbacks = callbacks
        self._closed = asyncio.Event()

    async def run(self) -> None:
        """Receive until ``close``."""
        await self._callbacks.call(self._callbacks.on_events, "context", "event")
        await self._closed.wait()
        for reason in ("shutdown", "shutdown, other partition"):
            closing = self._callbacks.call(self._callbacks.on_partition_close, "context", reason)
            await to_the_end(asyncio.ensure_future(closing))
        self.is_released = True

    def close(self) -> None:
        """Let ``run`` end."""
        self._closed.set()


CLOSED = ["shutdown", "shutdown, other partition"]


@pytest.mark.parametrize(("is_repeated", "closed"), [(False, CLOSED), (True, CLOSED[:1])])
def test_ctrl_c_in_a_callback_closes_and_releases_the_partitions_before_it_is_raised(
    is_repeated, closed
):
    """Otherwise the next owner would wait until the ownership has expired. A repetition, while a
    callback takes too long, makes no further calls.
    """
    seen: list[object] = []

    def on_event(_: object, event: object) -> None:
        seen.append(event)
        raise KeyboardInterrupt

    def on_close(_: object, reason: object) -> None:
        seen.append(reason)
        if is_repeated:
            raise KeyboardInterrupt

    caller = ThreadCaller()
    options: Any = {"on_partition_close": on_close}
    callbacks = callbacks_of(on_event, options, caller, takes_batches=False)
    call: Any = call_of(callbacks)
    call._receiving = receiving = FakeReceiving(callbacks)
    with pytest.raises(KeyboardInterrupt):
        call.run(caller)

    assert seen == ["event", *closed]
    assert receiving.is_released or is_repeated
