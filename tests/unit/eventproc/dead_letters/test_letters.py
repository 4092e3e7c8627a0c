"""Which letters are read, and a sink that calls an ordinary function."""

import asyncio
from dataclasses import replace
from datetime import datetime

import pytest

from eventproc.dead_letters import (
    FunctionDeadLetterSink,
    LetterFilter,
    MemoryDeadLetterReader,
    MemoryDeadLetterSink,
    matching,
)
from eventproc.errors import ConfigurationError, DeadLetterError
from tests.scenarios.dead_letters import letter


@pytest.mark.parametrize("setting", ["since", "until"])
def test_a_time_without_a_zone_is_refused(setting):
    """It could not be compared with the time of a letter."""
    with pytest.raises(ConfigurationError, match=f"{setting} is .*: give it a time zone"):
        LetterFilter(**{setting: datetime(2026, 1, 31)})  # type: ignore[arg-type]  # noqa: DTZ001


@pytest.mark.parametrize(("letters_max", "count"), [(0, 0), (1, 1), (9, 3), (None, 3)])
async def test_no_more_letters_are_read_than_wanted(letters_max, count):
    """None, if none is wanted."""
    sink = MemoryDeadLetterSink()
    for number in range(3):
        await sink.store(letter(number))
    async with MemoryDeadLetterReader(sink) as reader:
        found = await matching(reader, letters_max=letters_max)

    assert len(found) == count


async def test_any_error_of_a_function_means_that_the_letter_is_not_stored():
    """Also one that a future refuses."""

    def store(_):
        next(iter(()))

    async with asyncio.timeout(10), FunctionDeadLetterSink.blocking(store) as sink:
        with pytest.raises(DeadLetterError, match="StopIteration"):
            await sink.store(letter(1))


async def test_two_messages_of_a_queue_with_one_number_are_two_letters():
    """Numbers begin anew with another store. A letter that is stored again is one."""
    sink, first = MemoryDeadLetterSink(), letter(5)
    first = replace(first, event=replace(first.event, offset="queue:5"))
    second = replace(first, event=replace(first.event, body=b"another"))
    third = replace(first, event=replace(first.event, message_id="another"))
    for each in (first, second, first, third):
        await sink.store(each)
    async with MemoryDeadLetterReader(sink) as reader:
        found = await matching(reader)

    assert len(found) == 3
