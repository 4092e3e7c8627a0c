"""Only ``update_checkpoint`` of the program moves a position."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc._core.delivery.checkpoints import (
    adoption,
    initial_checkpoint,
    operators_writer,
)
from eventproc.compat._checkpoints import OPTIONS, Checkpoints, Move
from eventproc.errors import OwnershipLostError, StoreUnavailableError
from eventproc.models import (
    Checkpoint,
    CheckpointResult,
    CheckpointUpdate,
    ConsumerGroup,
    SequenceRange,
    WriteOutcome,
)
from eventproc.ports import ForwardingStore

GROUP = ConsumerGroup(fully_qualified_namespace="n", eventhub_name="h")


def update_to(number: int, replaces: Checkpoint | None, writer: str = "pump") -> CheckpointUpdate:
    return CheckpointUpdate(
        partition_id="0",
        offset=str(number * 10),
        sequence_number=number,
        replaces=replaces,
        writer=writer,
    )


def move_to(number: int, *, is_owned: bool = True) -> Move:
    return Move(
        partition_id="0",
        offset=str(number * 10),
        sequence_number=number,
        writer="program",
        is_owned=lambda: is_owned,
        options={},
    )


class Group:
    """A store of one call, and the account behind it."""

    def __init__(self, wrap=lambda store: store) -> None:
        self.account = MemoryAccount()
        self.plain = MemoryCheckpointStore(self.account)
        self.checkpoints = Checkpoints(wrap(MemoryCheckpointStore(self.account)), GROUP)

    async def __aenter__(self):
        await self.plain.open()
        await self.checkpoints.open()
        return self

    async def __aexit__(self, *error):
        await self.checkpoints.close()
        await self.plain.close()

    async def read(self):
        return await self.checkpoints.read_checkpoint(GROUP, "0")

    async def write(self, update):
        return await self.checkpoints.update_checkpoint(GROUP, update)

    async def stored(self):
        found = await self.plain.read_checkpoint(GROUP, "0")
        return found and found.sequence_number

    async def elsewhere(self, number, writer="other"):
        found = await self.plain.read_checkpoint(GROUP, "0")
        update = replace(update_to(number, None, writer), replaces=found, is_reset=True)
        return await self.plain.update_checkpoint(GROUP, update)


async def test_what_the_processor_handled_is_not_stored():
    """It counts as stored for the processor, so that it does not try again."""
    async with Group() as group:
        await group.read()
        result = await group.write(update_to(5, None))

        assert result.outcome is WriteOutcome.WON
        assert result.checkpoint.sequence_number == 5
        assert await group.stored() is None


async def test_a_partition_without_a_checkpoint_begins_again_where_the_call_began():
    """Although the processor has handled more."""
    async with Group() as group:
        await group.read()
        begun = (await group.write(initial_checkpoint("0", "pump"))).checkpoint
        group.checkpoints.begin("0")
        await group.write(update_to(5, begun))

        assert (await group.read()).sequence_number == -1
        assert await group.stored() is None


async def test_what_was_handled_is_not_where_the_call_began():
    """A pump that begins at a time, a number or an offset writes nothing before that."""
    async with Group() as group:
        for pump in ("first", "second"):
            assert await group.read() is None
            group.checkpoints.begin("0")
            await group.write(update_to(5, None, pump))

        assert await group.read() is None


async def test_a_position_of_the_program_is_stored_and_adopted():
    """Then the adoption is written, too: it fences the former owner."""
    async with Group() as group:
        await group.read()
        assert await group.checkpoints.move(move_to(3)) is None
        found = await group.read()
        await group.write(adoption(found, "next pump"))

        assert (await group.plain.read_checkpoint(GROUP, "0")).writer == "next pump"
        assert await group.checkpoints.move(move_to(4)) is None
        assert await group.stored() == 4


async def test_a_lower_position_changes_nothing():
    """Also if another process stored the higher one."""
    async with Group() as group:
        await group.read()
        await group.checkpoints.move(move_to(3))
        assert "3" in await group.checkpoints.move(move_to(2))
        await group.elsewhere(9)
        assert "9" in await group.checkpoints.move(move_to(5))

        assert await group.stored() == 9


async def test_a_position_of_a_former_owner_changes_nothing():
    """It is refused before the write, and after a write that was lost."""
    async with Group() as group:
        await group.read()
        assert "own" in await group.checkpoints.move(move_to(3, is_owned=False))
        answers = iter([True, False])
        await group.elsewhere(1)
        move = replace(move_to(3), is_owned=lambda: next(answers))
        assert "own" in await group.checkpoints.move(move)

        assert await group.stored() == 1


async def test_a_position_is_written_over_that_of_a_lower_one():
    """The write that is lost is tried again."""
    async with Group() as group:
        await group.read()
        await group.elsewhere(1)
        await group.checkpoints.move(move_to(3))

        assert await group.stored() == 3


async def test_a_checkpoint_that_an_operator_moved_ends_the_pump():
    """Not the program's position counts, but the operator's."""
    async with Group() as group:
        await group.read()
        await group.checkpoints.move(move_to(8))
        await group.elsewhere(2, operators_writer("token"))
        with pytest.raises(OwnershipLostError):
            await group.checkpoints.move(move_to(9))

        assert await group.stored() == 2


async def test_what_an_operator_moved_stays_until_the_next_pump_adopts_it():
    """Also if the program catches the error, and stores the next position."""
    async with Group() as group:
        await group.read()
        await group.checkpoints.move(move_to(8))
        await group.elsewhere(-1, operators_writer("token"))
        for number in (9, 10, 11):
            with pytest.raises(OwnershipLostError):
                await group.checkpoints.move(move_to(number))
        assert await group.stored() == -1

        await group.write(adoption(await group.read(), "next pump"))
        assert await group.checkpoints.move(move_to(0)) is None
        assert await group.stored() == 0


async def test_ranges_that_another_owner_completed_stay_completed():
    """As far as they lie above the new position."""
    async with Group() as group:
        done = (SequenceRange(3, 4), SequenceRange(6, 9))
        await group.plain.update_checkpoint(GROUP, replace(update_to(1, None), completed=done))
        await group.read()
        await group.checkpoints.move(move_to(7))

        found = await group.plain.read_checkpoint(GROUP, "0")
        assert found.completed == (SequenceRange(8, 9),)


class Silent(ForwardingStore):
    """A store whose writes get no answer."""

    async def update_checkpoint(self, group, update):
        return CheckpointResult(outcome=WriteOutcome.UNKNOWN)


async def test_a_write_without_an_answer_is_raised_in_the_end():
    """The program then decides, as with Azure's store."""
    async with Group(Silent) as group:
        await group.read()
        with pytest.raises(StoreUnavailableError):
            await group.checkpoints.move(move_to(3))


class Options(ForwardingStore):
    """A store that notes the program's keyword arguments."""

    seen: Mapping[str, object] | None = None

    async def update_checkpoint(self, group, update):
        self.seen = OPTIONS.get()
        return await super().update_checkpoint(group, update)


async def test_keyword_arguments_of_the_program_reach_its_store():
    async with Group(Options) as group:
        await group.read()
        await group.checkpoints.move(replace(move_to(3), options={"timeout": 7}))

        assert group.checkpoints.store.seen == {"timeout": 7}


async def test_a_store_that_is_closed_belongs_to_no_loop():
    """A checkpoint that comes later waits for nothing."""
    async with Group() as group:
        assert group.checkpoints.loop is asyncio.get_running_loop()

    assert group.checkpoints.loop is None
