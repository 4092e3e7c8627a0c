"""A processor that an error ends: the block around it ends as well, and the cause can be seen."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from eventproc import ConfigurationError, EventProcessor
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup, seconds, source_of

LATE_S = 10_000.0


class BugError(Exception):
    """An error that no source should raise: it ends the processor."""


def break_down(processor: EventProcessor) -> None:
    """Have the processor end with an error when it reads next which partitions exist."""

    async def fail() -> Any:
        raise BugError("of the source")

    source_of(processor).partition_ids = fail


def outcome_of(block: Callable[[EventProcessor], Awaitable[None]], **settings: Any) -> Any:
    """Return the error that leaves the block around a processor that fails, and when it does."""

    async def scenario():
        setup = Setup()
        setup.publish(3)
        processor = setup.processor(**settings)
        try:
            async with processor:
                await seconds(5)
                break_down(processor)
                await block(processor)
        except BaseException as error:  # noqa: BLE001 - it is the outcome
            task = asyncio.current_task()
            assert task is not None
            return error, asyncio.get_running_loop().time(), task.cancelling(), setup
        return None, asyncio.get_running_loop().time(), 0, setup

    return run_virtual(scenario())


def test_the_block_of_a_processor_that_fails_is_cancelled_with_its_error():
    """As a task group's: nothing would be handled any more. What was handled is stored."""
    error, at_s, cancelling, setup = outcome_of(lambda _: seconds(LATE_S))

    assert isinstance(error, BugError)
    assert at_s < LATE_S / 10
    assert cancelling == 0
    assert setup.checkpointed() == 2


async def test_serve_raises_the_error_that_ended_the_processor():
    """At once."""
    setup = Setup()
    processor = setup.processor()
    serving = asyncio.create_task(processor.serve())
    await seconds(5)
    break_down(processor)
    await asyncio.wait([serving], timeout=LATE_S / 10)

    assert isinstance((serving.done() and serving.exception()), BugError)


async def test_an_error_of_the_renewals_ends_the_processor():
    """It would seem to run, and lose one lease after the other."""
    setup = Setup()
    processor = setup.processor()

    async def refuse(*_: Any) -> None:
        await seconds(5)
        raise ConfigurationError("notifications cannot be received")

    store: Any = setup.store_by_owner["a"]
    store.watch = refuse  # It runs beside the renewals, and ends with them.
    with pytest.raises(ConfigurationError, match="notifications"):
        async with processor:
            await seconds(LATE_S)

    assert asyncio.get_running_loop().time() < LATE_S / 10


async def test_a_cancellation_by_others_stays_one_when_the_processor_fails():
    """A time-out around the block, for example, would never end otherwise."""
    setup = Setup()
    processor = setup.processor()

    async def serve() -> None:
        async with processor:
            await seconds(5)
            break_down(processor)
            try:
                await seconds(LATE_S)
            except asyncio.CancelledError:
                serving.cancel()
                raise

    serving = asyncio.create_task(serve())
    await asyncio.wait([serving], timeout=LATE_S / 10)

    assert serving.cancelled()


def test_an_error_of_the_block_itself_is_raised_and_that_of_the_processor_logged(caplog):
    """As before."""

    async def block(_: EventProcessor) -> None:
        try:
            await seconds(LATE_S)
        finally:
            raise KeyError("of the block")

    error, _, cancelling, _ = outcome_of(block)

    assert isinstance(error, KeyError)
    assert cancelling == 0
    assert any("BugError" in record.getMessage() for record in caplog.records)


def test_the_last_line_of_a_processor_that_failed_names_the_cause(caplog):
    """An operator reads the end of a log first."""
    caplog.set_level(logging.INFO, "eventproc.processor")
    outcome_of(lambda _: seconds(LATE_S))
    last = vars(caplog.records[-1])

    assert last["event"] == "processor_stopped"
    assert last["error"] == "BugError('of the source')"


async def test_the_last_line_of_a_processor_that_was_stopped_names_no_cause(caplog):
    """Nor does it say that a processor failed."""
    caplog.set_level(logging.INFO, "eventproc.processor")
    async with Setup().processor():
        await seconds(5)

    last = vars(caplog.records[-1])

    assert (last["event"], "error" in last) == ("processor_stopped", False)


async def test_a_processor_that_failed_can_be_started_again():
    """It serves as before."""
    setup = Setup()
    processor = setup.processor()
    await processor.start()
    await seconds(5)
    names = source_of(processor).partition_ids
    break_down(processor)
    await processor.finished()
    with pytest.raises(BugError):
        await processor.stop()
    source_of(processor).partition_ids = names
    setup.publish(2)
    async with processor:
        await seconds(30)

    assert setup.numbers() == [0, 1]
