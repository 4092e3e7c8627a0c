"""Adopting a checkpoint while others write it."""

import asyncio
from typing import Any

import pytest

from eventproc import OwnershipLostError
from eventproc.models import CheckpointUpdate
from eventproc.testing.virtual_time import run_virtual
from tests.stories.scene import Scene
from tests.unit.eventproc.partition.test_checkpointer import (
    CheckpointFixture,
    former_and_next,
    writer_of,
)


async def write_elsewhere(fixture: CheckpointFixture, offset: str, sequence_number: int) -> None:
    """Replace the checkpoint as a program that is no owner does."""
    update = CheckpointUpdate(
        partition_id="0",
        offset=offset,
        sequence_number=sequence_number,
        replaces=fixture.scene.checkpoint(),
        writer="elsewhere",
    )
    await fixture.store.update_checkpoint(fixture.scene.group, update)


@pytest.mark.parametrize("is_lost_meanwhile", [False, True])
def test_an_adoption_that_another_write_overtook_is_repeated_by_the_owner_alone(is_lost_meanwhile):
    """After a wait, and with the checkpoint as it is then."""

    async def scenario() -> Any:
        scene = Scene()
        fixture, _, following = await former_and_next(scene)
        fixture.owner = "b"
        verified = 0

        async def overtake():
            nonlocal verified
            verified += 1
            if verified == 1:
                await write_elsewhere(fixture, "7", 7)
                fixture.owner = "c" if is_lost_meanwhile else "b"

        fixture.before_verify = overtake
        if is_lost_meanwhile:
            with pytest.raises(OwnershipLostError):
                await following.adopt()
            return writer_of(scene), scene.checkpointed()
        adopted = await following.adopt()
        assert adopted is not None
        assert following.stored == adopted
        assert asyncio.get_running_loop().time() > 0, "it waits before it tries again"
        return writer_of(scene), adopted.sequence_number

    expected = ("elsewhere", 7) if is_lost_meanwhile else ("b/1/2", 7)

    assert run_virtual(scenario()) == expected


def test_a_processor_that_lost_the_partition_adopts_nothing():
    """Its write would fence the newer owner."""

    async def scenario():
        scene = Scene()
        _, _, following = await former_and_next(scene)  # The owner is still the former one.
        with pytest.raises(OwnershipLostError):
            await following.adopt()
        return writer_of(scene)

    assert run_virtual(scenario()) == "a/1/1"


def test_a_partition_without_checkpoint_gets_one_only_if_reading_begins_at_the_first_event():
    """It fences a former owner; before an event that is not known, there is no position."""

    async def scenario():
        scene = Scene()
        fixture = CheckpointFixture(scene)
        await fixture.store.open()
        nothing = await fixture.checkpointer("a").adopt(), scene.checkpoint()
        first = await fixture.checkpointer("a").adopt(is_from_first=True)
        assert first is not None
        return nothing, first.offset, first.sequence_number, writer_of(scene)

    assert run_virtual(scenario()) == ((None, None), "-1", -1, "a/1/2")


def test_offsets_of_another_protocol_end_the_pump_without_a_write():
    """Their numbers cannot be compared with those of this source."""

    async def scenario():
        scene = Scene()
        fixture, former, _ = await former_and_next(scene)
        await write_elsewhere(fixture, "kafka:9", 9)
        former.progress.advance(10, "10")
        former.note(1)
        with pytest.raises(OwnershipLostError):
            await former.flush()
        return writer_of(scene), scene.checkpointed()

    assert run_virtual(scenario()) == ("elsewhere", 9)
