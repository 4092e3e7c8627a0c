"""Partitions whose checkpoint cannot be adopted or written are reported; the others continue."""

import logging
from datetime import timedelta
from typing import Any

import pytest

from eventproc import (
    CheckpointPolicy,
    ConfigurationError,
    StoreCorruptError,
    StoreError,
    StoreRejectedError,
    StoreUnavailableError,
)
from eventproc.models import CheckpointResult, MemberResult, WriteOutcome
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds
from tests.scenarios.opentelemetry_sdk import Sdk

DAMAGED = StoreCorruptError("the state of partition 0 is damaged: restore it")
REFUSED = StoreRejectedError("the credential lacks the right to write blobs")


class RecordingErrors(Noting):
    """Records the errors that ``process_error`` gets."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.errors: list[Exception] = []

    async def process_error(self, context, error):
        """Note it."""
        self.errors.append(error)


class FailingOnError(Noting):
    """Raises in ``process_error``, because ``initialize`` was not called yet."""

    async def process_error(self, context, error):
        """Fail."""
        raise AttributeError("no connection yet")


def lines_of(caplog, *events):
    """Levels and names of these events, in order."""
    return [
        (r.levelname, getattr(r, "event", ""))
        for r in caplog.records
        if getattr(r, "event", "") in events
    ]


def blocked(error: Exception, caplog: Any, kind: type[Noting] = RecordingErrors) -> Any:
    """Serve two partitions, of which one cannot be read for ten minutes, and then can."""
    sdk = Sdk()

    async def scenario():
        setup, handlers = sdk.setup(2), []
        for partition_id in ("0", "1"):
            setup.publish(3, partition_id)

        def make():
            handlers.append(kind(setup))
            return handlers[-1]

        processor = setup.processor(make)
        store: Any = setup.store_by_owner["a"]
        read = store.read_checkpoint

        async def broken(group, partition_id):
            if partition_id == "0":
                raise error
            return await read(group, partition_id)

        store.read_checkpoint = broken
        async with processor:
            await seconds(600)
            statistics = processor.statistics()
            during = {
                "handled": (setup.numbers("0"), setup.numbers("1")),
                "errors": [pump.checkpoint_error for pump in statistics.pumps],
                "owned": statistics.owned,
                "blocked": sdk.value("eventproc.partitions.blocked"),
                "reported": [set(getattr(handler, "errors", ())) for handler in handlers],
            }
            store.read_checkpoint = read
            await seconds(60)
            after = [pump.checkpoint_error for pump in processor.statistics().pumps]
        return during, after, setup.numbers("0")

    caplog.set_level(logging.INFO, "eventproc")
    return run_virtual(scenario())


@pytest.mark.parametrize("error", [DAMAGED, REFUSED])
def test_a_checkpoint_that_needs_an_operator_is_reported(error, caplog):
    """In the log once, in statistics, metrics and ``process_error``. The other partition continues.

    When the checkpoint can be read again, the partition is served without a restart.
    """
    during, after, handled = blocked(error, caplog)

    assert during["handled"] == ([], [0, 1, 2])
    assert during["errors"] == [str(error), None]
    assert during["blocked"] == 1
    assert during["owned"] == ("0", "1")
    assert sorted(during["reported"], key=len) == [set(), {error}]
    assert lines_of(caplog, "adoption_failed", "adoption_recovered") == [
        ("ERROR", "adoption_failed"),
        ("INFO", "adoption_recovered"),
    ]
    assert (after, handled) == ([None, None], [0, 1, 2])


def test_a_checkpoint_that_the_store_does_not_return_is_waited_for(caplog):
    """It is logged once. No handler or metric reports it, because no operator is needed."""
    during, after, handled = blocked(StoreUnavailableError("no answer"), caplog)

    assert during["handled"] == ([], [0, 1, 2])
    assert (during["errors"], during["blocked"]) == ([None, None], 0)
    assert during["reported"] == [set(), set()]
    assert lines_of(caplog, "adoption_failed", "adoption_recovered") == [
        ("WARNING", "adoption_failed"),
        ("INFO", "adoption_recovered"),
    ]
    assert (after, handled) == ([None, None], [0, 1, 2])


def test_an_error_in_process_error_does_not_keep_a_partition_blocked(caplog):
    """``process_error`` may be called before ``initialize``."""
    _, after, handled = blocked(DAMAGED, caplog, FailingOnError)

    assert lines_of(caplog, "error_handler_failed") == [("WARNING", "error_handler_failed")]
    assert (after, handled) == ([None, None], [0, 1, 2])


async def test_a_blocked_partition_is_released_at_a_stop(caplog):
    """At once: there is nothing to drain and nothing to store."""
    setup = Setup()
    processor = setup.processor(lambda: RecordingErrors(setup))
    store: Any = setup.store_by_owner["a"]

    async def broken(*_):
        raise DAMAGED

    store.read_checkpoint = broken
    async with processor:
        await seconds(60)

    assert (setup.owners(), processor.statistics().abandoned) == ({"0": None}, ())


@pytest.mark.parametrize("place", ["write", "read"])
@pytest.mark.parametrize("error", [DAMAGED, REFUSED])
async def test_rejected_checkpoint_writes_are_logged_once_as_an_error(error, place, caplog):
    """Events are handled up to ``max_uncommitted_events``."""
    caplog.set_level(logging.INFO, "eventproc")
    setup = Setup()
    policy = CheckpointPolicy(max_events=1, max_uncommitted_events=10)
    processor = setup.processor(checkpoint_policy=policy, batch_size_max=5)
    store: Any = setup.store_by_owner["a"]
    update, read = store.update_checkpoint, store.read_checkpoint
    reason: StoreError = StoreUnavailableError("no answer")

    async def refuse(*_):
        return CheckpointResult(
            outcome=WriteOutcome.UNKNOWN, error=reason if place == "write" else None
        )

    async def refuse_read(*_):
        raise reason

    async with processor:
        await seconds(5)
        store.update_checkpoint = refuse
        if place == "read":
            store.read_checkpoint = refuse_read
        setup.publish(20)
        await seconds(60)
        errors = [processor.statistics().pumps[0].checkpoint_error]
        reason = error
        await seconds(600)
        errors.append(processor.statistics().pumps[0].checkpoint_error)
        during = setup.numbers()
        store.update_checkpoint, store.read_checkpoint = update, read
        await seconds(60)
        errors.append(processor.statistics().pumps[0].checkpoint_error)

    assert (during, setup.checkpointed()) == (list(range(10)), 19)
    assert errors == [None, str(error), None]
    assert lines_of(caplog, "checkpoint_failed", "checkpoint_recovered") == [
        ("WARNING", "checkpoint_failed"),
        ("ERROR", "checkpoint_failed"),
        ("INFO", "checkpoint_recovered"),
    ]


async def test_start_raises_if_the_store_rejects_the_member_record():
    """``ConfigurationError`` with the store's message, because a retry would not help."""
    setup = Setup()
    processor = setup.processor()
    store: Any = setup.store_by_owner["a"]
    count = 0

    async def refuse(*_):
        nonlocal count
        count += 1
        return MemberResult(outcome=WriteOutcome.UNKNOWN, error=REFUSED)

    store.announce_member = refuse
    with pytest.raises(ConfigurationError, match="lacks the right to write blobs"):
        await processor.start()

    assert count == 1


async def test_start_raises_if_the_store_does_not_answer():
    """Not ``ConfigurationError``: the store may answer later."""
    setup = Setup()
    processor = setup.processor()
    store: Any = setup.store_by_owner["a"]

    async def lose(*_):
        error = StoreUnavailableError("the container cannot answer now (503 ServerBusy)")
        return MemberResult(outcome=WriteOutcome.UNKNOWN, error=error)

    store.announce_member = lose
    with pytest.raises(StoreUnavailableError, match="503 ServerBusy"):
        await processor.start()


async def test_rejected_polls_are_logged_once_as_an_error(caplog):
    """Also if an outage was logged before."""
    caplog.set_level(logging.INFO, "eventproc")
    setup = Setup()
    processor = setup.processor(load_balancing_interval=timedelta(seconds=5))
    store: Any = setup.store_by_owner["a"]
    listed = store.list_members
    reason: StoreError = StoreUnavailableError("no answer")

    async def refuse(*_):
        raise reason

    async with processor:
        await seconds(5)
        store.list_members = refuse
        await seconds(60)
        reason = REFUSED
        await seconds(600)
        store.list_members = listed
        await seconds(60)

    assert lines_of(caplog, "store_failed", "store_recovered") == [
        ("WARNING", "store_failed"),
        ("ERROR", "store_failed"),
        ("INFO", "store_recovered"),
    ]


@pytest.mark.parametrize("lanes", [1, 3])
async def test_a_stop_that_cannot_checkpoint_logs_the_partitions(lanes):
    """Events there are delivered again. Partitions whose progress is stored are not named."""
    setup = Setup(2)
    policy = CheckpointPolicy(max_events=1)
    processor = setup.processor(checkpoint_policy=policy, key_concurrency=lanes)
    store: Any = setup.store_by_owner["a"]
    update = store.update_checkpoint

    async def refuse(group, checkpoint):
        if checkpoint.partition_id == "1":
            return CheckpointResult(outcome=WriteOutcome.UNKNOWN, error=REFUSED)
        return await update(group, checkpoint)

    async with processor:
        await seconds(5)
        store.update_checkpoint = refuse
        for partition_id in ("0", "1"):
            setup.publish(3, partition_id)
        await seconds(5)
        before = processor.statistics().abandoned
    first = processor.statistics().abandoned
    store.update_checkpoint = update
    async with processor:
        await seconds(60)

    assert (before, first, processor.statistics().abandoned) == ((), ("1",), ())


async def test_a_lost_partition_is_not_logged_as_abandoned():
    """Its new owner stores the progress from there."""
    setup = Setup()
    processor = setup.processor(checkpoint_policy=CheckpointPolicy.manual())
    async with processor:
        setup.publish(3)
        await seconds(5)
        assert processor._run is not None
        processor._run.pumps.lose("0")

    assert processor.statistics().abandoned == ()


async def test_the_first_rejection_counts_as_a_first_attempt_after_an_outage(caplog):
    """So an error that ``process_error`` raises for it is logged as a warning."""
    setup = Setup()
    processor = setup.processor(lambda: FailingOnError(setup))
    store: Any = setup.store_by_owner["a"]
    errors = [REFUSED, StoreUnavailableError("no answer")]

    async def broken(*_):
        raise errors.pop() if len(errors) > 1 else errors[0]

    store.read_checkpoint = broken
    async with processor:
        await seconds(600)

    assert lines_of(caplog, "error_handler_failed") == [("WARNING", "error_handler_failed")]
