"""Adopting a checkpoint while others write it."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from eventproc import (
    CheckpointPolicy,
    OwnershipLostError,
    StoreRejectedError,
    StoreUnavailableError,
)
from eventproc.models import CheckpointResult, WriteOutcome
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds
from tests.unit.eventproc._delivery.checkpoint_fixture import (
    CheckpointFixture,
    former_and_next,
    writer_of,
)


@pytest.mark.parametrize("is_lost_meanwhile", [False, True])
def test_an_adoption_that_another_write_overtook_is_repeated_by_the_owner_alone(is_lost_meanwhile):
    """After a wait, and with the checkpoint as it is then."""

    async def scenario() -> Any:
        setup = Setup()
        fixture, _, following = await former_and_next(setup)
        fixture.owner = "b"
        verified = 0

        async def overtake():
            nonlocal verified
            verified += 1
            if verified == 1:
                await fixture.store_by("elsewhere", 7)
                fixture.owner = "c" if is_lost_meanwhile else "b"

        fixture.before_verify = overtake
        if is_lost_meanwhile:
            with pytest.raises(OwnershipLostError):
                await fixture.adopt(following)
            return writer_of(setup), setup.checkpointed()
        adopted = await fixture.adopt(following)
        assert adopted is not None
        assert following.stored == adopted
        assert asyncio.get_running_loop().time() > 0, "it waits before it tries again"
        return writer_of(setup), adopted.sequence_number

    expected = ("elsewhere", 7) if is_lost_meanwhile else ("b/1/2", 7)

    assert run_virtual(scenario()) == expected


async def test_a_processor_that_lost_the_partition_adopts_nothing():
    """Its write would fence the newer owner."""
    setup = Setup()
    fixture, _, following = await former_and_next(setup)  # The owner is still the former one.
    with pytest.raises(OwnershipLostError):
        await fixture.adopt(following)

    assert writer_of(setup) == "a/1/1"


async def test_a_partition_without_checkpoint_gets_one_only_if_reading_begins_at_the_first_event():
    """It fences a former owner; before an event that is not known, there is no position."""
    setup = Setup()
    fixture = CheckpointFixture(setup)
    await fixture.store.open()
    nothing = await fixture.adopt(fixture.checkpointer("a")), setup.checkpoint()
    first = await fixture.adopt(fixture.checkpointer("a"), is_from_first=True)
    assert first is not None
    again = await fixture.adopt(fixture.checkpointer("a"), is_from_first=True)

    assert (nothing, first.offset, first.sequence_number, again and again.writer) == (
        (None, None),
        "-1",
        -1,
        "a/1/3",
    )


async def test_a_checkpoint_is_adopted_as_it_is_wherever_reading_would_begin_without_one():
    """Its position does not go back to the first event."""
    setup = Setup()
    fixture, _, following = await former_and_next(setup)
    fixture.owner = "b"
    adopted = await fixture.adopt(following, is_from_first=True)

    assert (adopted and adopted.sequence_number, setup.checkpointed()) == (5, 5)


async def test_a_checkpoint_without_offset_is_begun_at_and_not_written_back():
    """Some .NET versions write such; the first checkpoint fences the former owner."""
    setup = Setup()
    fixture, _, following = await former_and_next(setup)
    stored = setup.checkpoint()
    assert stored is not None
    found = replace(stored, offset=None)
    setup.account.records(setup.group).checkpoint_by_partition["0"] = found
    fixture.owner = "b"

    assert (await fixture.adopt(following) == found, setup.checkpoint() == found) == (True, True)


async def test_an_adoption_is_repeated_after_longer_and_longer_waits():
    """Another program writes the checkpoint all the time, and this processor owns the partition."""
    setup = Setup()
    fixture, _, following = await former_and_next(setup)
    fixture.owner = "b"

    async def overtake():
        number = 5 + fixture.verify_count
        if number < 11:
            await fixture.store_by("elsewhere", number)

    fixture.before_verify = overtake
    adopted = await fixture.adopt(following)

    assert (adopted and adopted.sequence_number, fixture.attempts) == (10, [1, 2, 3, 4, 5])


REFUSED = StoreRejectedError("no right")
NO_ANSWER = StoreUnavailableError("no answer")


@pytest.mark.parametrize("error", [REFUSED, NO_ANSWER])
@pytest.mark.parametrize("call", ["read", "write", "outcome"])
async def test_a_refused_adoption_is_shown_until_one_succeeds(error, call):
    """An operator has to act then; an outage ends by itself."""
    setup = Setup()
    fixture, _, following = await former_and_next(setup)
    fixture.owner = "b"
    arrives = fixture.write

    async def unknown(update):
        return CheckpointResult(outcome=WriteOutcome.UNKNOWN, error=error)

    if call == "read":
        fixture.read_error = error
    elif call == "write":
        fixture.write_error, fixture.is_failing = error, True
    else:
        fixture.write = unknown
    with pytest.raises(type(error)) as raised:
        await fixture.adopt(following)
    shown = following.refusal
    fixture.read_error, fixture.is_failing, fixture.write = None, False, arrives
    await fixture.adopt(following)

    assert (raised.value is error, shown, following.refusal) == (
        True,
        error if error is REFUSED else None,
        None,
    )


async def test_offsets_of_another_protocol_end_the_pump_without_a_write():
    """Their numbers cannot be compared with those of this source."""
    setup = Setup()
    fixture, former, _ = await former_and_next(setup)
    await fixture.store_by("elsewhere", 9, offset="kafka:9")
    former.progress.advance(10, "10")
    former.note(1)
    with pytest.raises(OwnershipLostError):
        await former.flush()

    assert (writer_of(setup), setup.checkpointed()) == ("elsewhere", 9)


async def test_a_handler_that_ignores_the_loss_of_its_checkpoint_does_not_keep_the_partition():
    """Its events would be handled, and their progress never stored, for as long as it is owned."""

    class Ignoring(Noting):
        async def process_events(self, context, events):
            await super().process_events(context, events)
            with suppress(OwnershipLostError):
                await context.checkpoint(events[-1])

    setup = Setup()
    fixture = CheckpointFixture(setup)
    await fixture.store.open()
    manual = CheckpointPolicy.manual()
    setup.publish(3)
    async with setup.processor(lambda: Ignoring(setup), checkpoint_policy=manual):
        await seconds(1)
        await fixture.store_by("elsewhere", 7, offset="kafka:7")
        for _ in range(10):
            setup.publish(1)
            await seconds(1)

    assert (setup.numbers(), setup.checkpointed()) == ([0, 1, 2, 3], 7)
