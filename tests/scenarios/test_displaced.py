"""A processor that lost its ``owner_id`` to another one writes nothing any more."""

import asyncio
import gc
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from eventproc import PartitionContext, PartitionHandler, ReceivedEvent
from eventproc._runtime.store_thread import ThreadExecutor
from eventproc.errors import DuplicateOwnerError, StoreUnavailableError
from eventproc.models import CloseReason
from tests.scenarios.group_setup import Setup, seconds, source_of

CLOSING_S = 40.0
"""How long the source takes to close: two renewals fit into it."""

HANDLER_CLOSING_S = 22.0
"""How long a handler does: a renewal fits into that, too."""


class Waiting(PartitionHandler):
    """Works until it is cancelled, and records why it was closed."""

    def __init__(self, closed: list[CloseReason]) -> None:
        self.closed = closed

    async def process_events(
        self, context: PartitionContext, events: Sequence[ReceivedEvent]
    ) -> None:
        """Wait for ever."""
        await asyncio.Event().wait()

    async def close(self, context: PartitionContext, reason: CloseReason) -> None:
        """Take longer than until the next renewal is due."""
        await asyncio.sleep(HANDLER_CLOSING_S)
        self.closed.append(reason)


class Displacement:
    """One processor that serves two partitions until another one takes its ``owner_id``."""

    def __init__(self, *, closing_s: float = 0.0, **settings: Any) -> None:
        self.setup = Setup(2)
        self._closing_s = closing_s
        self.closed: list[CloseReason] = []
        self.processor = self.setup.processor(
            lambda: Waiting(self.closed),
            shutdown_timeout=timedelta(minutes=5),
            **settings,
        )
        self.writes: list[str] = []

    async def start(self) -> None:
        """Start the processor, with a source that takes time to close."""
        source: Any = source_of(self.processor)
        close = source.close

        async def close_slowly() -> None:
            await asyncio.sleep(self._closing_s)
            await close()

        source.close = close_slowly
        await self.processor.start()

    async def displace(self, *, is_handing_over: bool = False) -> None:
        """Serve, lose the owner id, and record every write from the first poll that shows it."""
        await self.start()
        self.setup.publish(1, "0")
        await seconds(30)
        store: Any = self.setup.store_by_owner["a"]
        if is_handing_over:
            run = self.processor._run
            assert run is not None
            run.pumps.adjust(run.leases.held, {"0": "b"})  # Waits for the handler.
        members = store.list_members

        async def list_the_other(group):
            listed = await members(group)
            self.record_writes()
            members_now = tuple(replace(m, incarnation="other", etag="9") for m in listed.members)
            return replace(listed, members=members_now)

        # As if it had been suspended: the other one joined long ago, so this one yields at once.
        membership = self.processor._run._balancer.membership  # type: ignore[union-attr]
        rivals = membership.own.rivals.displacing("other")
        membership.own = replace(membership.own, rivals=rivals)
        store.list_members = list_the_other
        await self.processor.finished()
        with pytest.raises(DuplicateOwnerError):
            await self.processor.stop()

    def record_writes(self) -> None:
        """Record every write from now on."""
        store: Any = self.setup.store_by_owner["a"]
        for name in ("claim_ownership", "announce_member", "withdraw_member", "update_checkpoint"):
            setattr(store, name, self._recording(name, getattr(store, name)))

    def _recording(self, name: str, real: Any) -> Any:
        def call(*arguments: Any) -> Any:
            self.writes.append(name)
            return real(*arguments)

        return call


async def test_a_processor_that_lost_its_owner_id_writes_nothing_while_it_closes():
    """Its records belong to the other processor by now, and a renewal would change them."""
    displacement = Displacement(closing_s=CLOSING_S)
    await displacement.displace()

    assert displacement.writes == []


async def test_a_processor_that_lost_its_owner_id_finishes_no_hand_over():
    """The hand-over ends with the handler, without a write."""
    displacement = Displacement()
    await displacement.displace(is_handing_over=True)

    assert (displacement.writes, len(displacement.closed)) == ([], 2)


async def test_a_restarting_processor_renews_nothing_while_its_source_closes():
    """The next start has an expiration, counted from the last renewal."""
    displacement = Displacement(closing_s=CLOSING_S, static_membership=True)
    processor, setup = displacement.processor, displacement.setup
    await displacement.start()
    await seconds(5)
    stopping = asyncio.create_task(processor.stop())
    await seconds(HANDLER_CLOSING_S + 3)
    displacement.record_writes()
    await stopping

    assert (displacement.writes, set(setup.owners().values())) == ([], {"a"})


async def test_a_processor_that_lost_its_owner_id_closes_its_handlers_before_source_and_store():
    """A handler releases its resources before the source and the store close."""
    displacement = Displacement()
    await displacement.displace()
    left = asyncio.all_tasks() - {asyncio.current_task()}

    assert (displacement.closed, left) == ([CloseReason.OWNERSHIP_LOST] * 2, set())


async def test_a_failed_renewal_ends_the_processor():
    """No task of it goes on for a processor that has ended."""
    setup = Setup(1)
    processor = setup.processor()
    await processor.start()
    await seconds(1)
    run: Any = processor._run

    async def fail(**_: bool) -> None:
        raise RuntimeError("a store of the user's")

    run.leases.renew_due = fail
    await processor.finished()
    with pytest.raises(RuntimeError, match="of the user's"):
        await processor.stop()

    assert asyncio.all_tasks() - {asyncio.current_task()} == set()


@pytest.mark.real_time
async def test_the_error_of_a_call_without_a_waiting_caller_is_retrieved():
    """So asyncio does not log it as never retrieved."""
    logged: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))
    control = ThreadExecutor("test")
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def fail() -> None:
        control.call_soon(begun.set)
        while not go_on.is_set():  # noqa: ASYNC110 - of another loop
            await asyncio.sleep(0.001)
        raise StoreUnavailableError("no answer")

    waiter = asyncio.create_task(control.call(fail()))
    await begun.wait()
    waiter.cancel()
    await asyncio.wait([waiter])
    go_on.set()
    await asyncio.sleep(0.05)
    await control.close()
    was_cancelled = waiter.cancelled()
    del waiter  # It keeps what it waited for.
    gc.collect()

    assert was_cancelled
    assert logged == []
