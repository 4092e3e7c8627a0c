"""Clauses on checkpoints: they are fenced, never go back, and are one write with their state.

Relied on by: eventproc/_delivery/checkpointer.py, eventproc/_delivery/adoption.py
"""

import asyncio
from dataclasses import replace

from eventproc.models import (
    ALONE,
    COMPLETED_RANGES_MAX,
    IN_BATCH,
    NOT_BEGUN,
    STATE_BYTES_MAX,
    Checkpoint,
    ConsumerGroup,
    SequenceRange,
    alone,
)
from eventproc.ports import CheckpointStore
from eventproc.testing._clauses import require
from eventproc.testing._store_contract.bench import (
    Bench,
    own,
    owners,
    read_back,
    require_lost,
    store_checkpoint,
    update_of,
)

UNUSUAL_STATES = (b"\x00", b"\xff" * 100, b"{}", "état".encode(), bytes(range(256)) * 64)
WRITES_WHILE_READING = 60


def position_of(checkpoint: Checkpoint) -> tuple[object, ...]:
    """Return the fields of a checkpoint without its state."""
    return (
        checkpoint.partition_id,
        checkpoint.offset,
        checkpoint.sequence_number,
        checkpoint.writer,
        checkpoint.etag,
        checkpoint.last_modified,
    )


async def require_fenced(
    store: CheckpointStore, group: ConsumerGroup, replaces: Checkpoint | None, sentence: str
) -> None:
    """Require that a checkpoint of another pump, with a state, is refused."""
    update = update_of(
        9_000, replaces, writer="pump-of-a-zombie", state=b"a state that must not be stored"
    )
    result = await store.update_checkpoint(group, update)
    require_lost(result.outcome, f"{sentence} must be lost")


async def no_checkpoint_is_none(bench: Bench) -> None:
    """Without a stored checkpoint there is none: claiming a partition does not create one."""
    group = bench.new_group()
    await own(bench.store, group, "0", "a")
    require(await bench.store.read_checkpoint(group, "0") is None, "no checkpoint must be None")
    require(
        list(await bench.store.list_checkpoints(group)) == [],
        "owning a partition must not make a checkpoint",
    )


async def checkpoint_comes_back(bench: Bench) -> None:
    """A checkpoint is read and listed by every store as it was written, in all fields."""
    group = bench.new_group()
    written = await store_checkpoint(bench.store, group, update_of(7, None, offset="rs:1:0:7"))
    require(written.last_modified.utcoffset() is not None, "last_modified must be an aware time")
    read = await read_back(bench.other, group)
    require(
        position_of(read) == position_of(written) and read.writer == "pump-a",
        f"a checkpoint must be read as it was written: {read} for {written}",
    )
    listed = list(await bench.other.list_checkpoints(group))
    require(
        [position_of(checkpoint) for checkpoint in listed] == [position_of(written)],
        f"a checkpoint must be listed as it was written: {listed} for {written}",
    )
    largest = await store_checkpoint(bench.store, group, update_of(2**63 - 1, read))
    require(
        position_of(await read_back(bench.other, group)) == position_of(largest),
        "a sequence number may be any 64 bit integer",
    )


async def first_checkpoint_only_without_record(bench: Bench) -> None:
    """A checkpoint that replaces nothing is lost if there is one already, and changes nothing."""
    group = bench.new_group()
    written = await store_checkpoint(bench.store, group, update_of(7, None, state=b"s"))
    await require_fenced(bench.other, group, None, "a first checkpoint where one exists")
    require(await read_back(bench.store, group) == written, "a lost update must change nothing")


async def checkpoint_is_fenced(bench: Bench) -> None:
    """An update that replaces an outdated checkpoint is lost, and changes no position or state."""
    group = bench.new_group()
    first = await store_checkpoint(bench.store, group, update_of(7, None, state=b"seven"))
    second = await store_checkpoint(
        bench.other, group, update_of(8, first, writer="pump-b", state=b"eight")
    )
    await require_fenced(bench.store, group, first, "replacing an outdated checkpoint")
    result = await bench.store.update_checkpoint(group, update_of(8, first, writer="pump-b"))
    require_lost(
        result.outcome,
        "replacing an outdated checkpoint must be lost even with what is stored already",
    )
    require(
        await read_back(bench.store, group) == second,
        "a lost update must change neither position nor state",
    )


async def listed_checkpoint_is_fenced(bench: Bench) -> None:
    """An update that replaces a listed checkpoint is lost, too, if it was written since."""
    group = bench.new_group()
    first = await store_checkpoint(bench.store, group, update_of(7, None, state=b"seven"))
    (listed,) = await bench.other.list_checkpoints(group)
    second = await store_checkpoint(bench.store, group, update_of(8, first, state=b"eight"))
    for state in (None, b"nine"):
        update = update_of(9, listed, writer="pump-b", state=state)
        result = await bench.other.update_checkpoint(group, update)
        require_lost(result.outcome, "replacing an outdated checkpoint of a listing must be lost")
    require(await read_back(bench.store, group) == second, "a lost update must change nothing")


async def replacing_needs_a_record(bench: Bench) -> None:
    """Replacing a checkpoint that does not exist is lost, and creates none."""
    group = bench.new_group()
    elsewhere = await store_checkpoint(bench.store, group, update_of(7, None))
    result = await bench.store.update_checkpoint(
        group, update_of(8, replace(elsewhere, partition_id="1"), partition_id="1")
    )
    require_lost(result.outcome, "replacing what does not exist must be lost")
    require(
        await bench.store.read_checkpoint(group, "1") is None, "a lost update must make no record"
    )


async def checkpoint_never_goes_back(bench: Bench) -> None:
    """An update with a lower sequence number is refused, unless it is a reset."""
    group = bench.new_group()
    written = await store_checkpoint(bench.store, group, update_of(7, None))
    for checkpoint in (written, await read_back(bench.other, group)):
        try:
            update = update_of(6, checkpoint)
        except ValueError:
            continue
        await bench.store.update_checkpoint(group, update)
        stored = await read_back(bench.store, group)
        require(
            stored.sequence_number == written.sequence_number,
            f"a checkpoint must never go back: it went from 7 to {stored.sequence_number}",
        )
    listed = list(await bench.other.list_checkpoints(group))
    require(
        [checkpoint.sequence_number for checkpoint in listed] == [7],
        "a listed checkpoint must carry its sequence number, which keeps it from going back",
    )
    reset = await store_checkpoint(bench.store, group, update_of(3, written, is_reset=True))
    require(
        position_of(await read_back(bench.other, group)) == position_of(reset),
        "an operator's reset may go back",
    )


async def adoption_fences_the_former_writer(bench: Bench) -> None:
    """Repeating the stored content is a write: the former owner's next checkpoint is lost."""
    group = bench.new_group()
    former = await store_checkpoint(bench.store, group, update_of(7, None, state=b"seven"))
    found = await read_back(bench.other, group)
    adopted = await store_checkpoint(
        bench.other, group, update_of(7, found, writer="pump-b", offset=found.offset)
    )
    require(adopted.etag != former.etag, "an adoption must change the etag")
    require(adopted.state == b"seven", "an adoption without state must keep the stored state")
    require(adopted.writer == "pump-b", "an adoption must name its own writer")
    await require_fenced(bench.store, group, former, "the former owner's write after an adoption")
    require(
        await read_back(bench.store, group) == adopted,
        "after an adoption the store must hold what the new owner wrote",
    )
    await store_checkpoint(bench.other, group, update_of(9, adopted, writer="pump-b"))


async def state_is_stored_with_its_position(bench: Bench) -> None:
    """A state comes back byte for byte, with the position that it was written with."""
    group = bench.new_group()
    checkpoint = None
    for number, state in enumerate(UNUSUAL_STATES):
        checkpoint = await store_checkpoint(
            bench.store, group, update_of(number, checkpoint, state=state)
        )
        read = await read_back(bench.other, group)
        require(
            (read.state, read.state_sequence_number) == (state, number) and read == checkpoint,
            f"a state must be read as written, with its position: {read}",
        )
    listed = list(await bench.other.list_checkpoints(group))
    require(
        all(checkpoint.state in {None, UNUSUAL_STATES[-1]} for checkpoint in listed),
        "a listing gives the stored state or leaves it out",
    )


async def state_may_be_left_alone_or_removed(bench: Bench) -> None:
    """``None`` keeps the stored state and its position, ``b""`` removes it."""
    group = bench.new_group()
    first = await store_checkpoint(bench.store, group, update_of(7, None, state=b"seven"))
    moved = await store_checkpoint(bench.store, group, update_of(8, first))
    read = await read_back(bench.other, group)
    require(
        (read.sequence_number, read.state, read.state_sequence_number) == (8, b"seven", 7),
        f"an update without state must keep the state and say where it belongs: {read}",
    )
    require(read == moved, f"a won update must return what is stored: {moved} for {read}")
    removed = await store_checkpoint(bench.store, group, update_of(9, moved, state=b""))
    read = await read_back(bench.other, group)
    require(
        (read.state, read.state_sequence_number) == (None, None) and read == removed,
        f"an empty state must remove the stored one: {read}",
    )


async def largest_state_is_stored(bench: Bench) -> None:
    """A state of the size limit is stored; position-only updates after it keep it."""
    group = bench.new_group()
    state = bytes(1024) * (STATE_BYTES_MAX // 1024)
    first = await store_checkpoint(bench.store, group, update_of(1, None, state=state))
    await store_checkpoint(bench.store, group, update_of(2, first))
    read = await read_back(bench.other, group)
    require(read.state == state, "a state of the size limit must be stored and kept whole")


async def completed_ranges_come_back(bench: Bench) -> None:
    """Completed ranges and the isolation are read as written, and replaced by each update."""
    group = bench.new_group()
    largest = tuple(
        SequenceRange(at, at + 1) for at in range(100, 3 * COMPLETED_RANGES_MAX + 100, 3)
    )
    checkpoint = None
    for number, completed, isolation in (
        (7, (SequenceRange(9, 9), SequenceRange(11, 20)), NOT_BEGUN),
        (7, (SequenceRange(9, 20),), ALONE),
        (8, (SequenceRange(9, 20),), ALONE),
        (8, (), alone(2**31)),
        (9, largest, IN_BATCH),
        (10, (), NOT_BEGUN),
        (11, (SequenceRange(2**62, 2**63 - 1),), IN_BATCH),
    ):
        checkpoint = await store_checkpoint(
            bench.store,
            group,
            update_of(number, checkpoint, completed=completed, isolation=isolation),
        )
        read = await read_back(bench.other, group)
        require(
            (read.completed, read.isolation) == (completed, isolation),
            "completed ranges and the isolation must be read as written: "
            f"{read.completed[:3]}, {read.isolation}",
        )
        require(read == checkpoint, "a won update must return what is stored")


async def completed_ranges_leave_the_state(bench: Bench) -> None:
    """An update without state keeps the state, with any other fields and over any checkpoint."""
    group = bench.new_group()
    checkpoint = await store_checkpoint(bench.store, group, update_of(7, None, state=b"seven"))
    done = (SequenceRange(9, 9),)
    for number, completed, isolation in (
        (7, (), IN_BATCH),
        (7, done, NOT_BEGUN),
        (8, done, NOT_BEGUN),
        (8, (), NOT_BEGUN),
    ):
        for is_listed in (False, True):
            if is_listed:
                (checkpoint,) = await bench.other.list_checkpoints(group)
            update = update_of(number, checkpoint, completed=completed, isolation=isolation)
            checkpoint = await store_checkpoint(bench.store, group, update)
            read = await read_back(bench.other, group)
            require(
                (read.state, read.state_sequence_number) == (b"seven", 7),
                f"an update without state must keep the state and its position: {read}",
            )
            require(
                (read.completed, read.isolation) == (completed, isolation) and read == checkpoint,
                f"an update must be stored as it is, also over a listed checkpoint: {read}",
            )


async def listing_leaves_all_fields_out_or_none(bench: Bench) -> None:
    """A listed checkpoint has all fields, or it is partial and has only its position."""
    group = bench.new_group()
    done = [SequenceRange(9, 9)]
    update = update_of(7, None, state=b"seven", completed=done, isolation=ALONE)
    whole = await store_checkpoint(bench.store, group, update)
    position = replace(
        whole, state=None, state_sequence_number=None, completed=(), isolation=NOT_BEGUN
    )
    (listed,) = await bench.other.list_checkpoints(group)
    require(
        listed == (replace(position, is_partial=True) if listed.is_partial else whole),
        f"a listing that leaves fields out must leave all of them out, and say so: {listed}",
    )


async def reset_leaves_nothing_behind(bench: Bench) -> None:
    """After a reset completed ranges, isolation and state from before it are gone."""
    group = bench.new_group()
    counted = await store_checkpoint(bench.store, group, update_of(7, None, isolation=alone(3)))
    moved = await store_checkpoint(
        bench.store, group, update_of(9, counted, state=b"s", completed=[SequenceRange(11, 12)])
    )
    await store_checkpoint(bench.other, group, update_of(7, moved, state=b"", is_reset=True))
    read = await read_back(bench.store, group)
    require(
        (read.state, read.completed, read.isolation) == (None, (), NOT_BEGUN),
        f"a reset must leave nothing behind: {read}",
    )


async def place_before_the_first_event_is_stored(bench: Bench) -> None:
    """Offset and sequence number -1 come back, so that a new owner can adopt them."""
    group = bench.new_group()
    written = await store_checkpoint(
        bench.store, group, update_of(-1, None, offset="-1", isolation=IN_BATCH)
    )
    read = await read_back(bench.other, group)
    require(read == written, f"the place before the first event must be read as written: {read}")
    await store_checkpoint(bench.other, group, update_of(-1, read, offset="-1", state=b"s"))
    read = await read_back(bench.other, group)
    require(read.state_sequence_number == -1, f"a state may belong to that place: {read}")


async def state_and_position_are_one_write(bench: Bench) -> None:
    """No reader, at any moment, sees a position with another position's state."""
    group = bench.new_group()
    is_done = asyncio.Event()

    async def write() -> None:
        checkpoint = None
        for number in range(WRITES_WHILE_READING):
            checkpoint = await store_checkpoint(
                bench.store, group, update_of(number, checkpoint, state=str(number).encode())
            )
        is_done.set()

    async def read() -> None:
        while not is_done.is_set():
            seen = await bench.other.read_checkpoint(group, "0")
            if seen is None:
                continue
            require(
                seen.state == str(seen.sequence_number).encode()
                and seen.state_sequence_number == seen.sequence_number,
                "state and position must be one write: a reader saw position "
                f"{seen.sequence_number} with the state of {seen.state_sequence_number}",
            )

    await asyncio.gather(write(), read(), read())


async def checkpoints_keep_to_their_group(bench: Bench) -> None:
    """A group does not see another group's checkpoints; names ignore case."""
    group = bench.new_group("$Default")
    written = await store_checkpoint(bench.store, group, update_of(7, None))
    for neighbour in (replace(group, name="$Default1"), replace(group, eventhub_name="hub2")):
        require(
            list(await bench.store.list_checkpoints(neighbour)) == []
            and await bench.store.read_checkpoint(neighbour, "0") is None,
            "a group must not see another group's checkpoints",
        )
    shouted = replace(group, eventhub_name="HUB", name="$DEFAULT")
    require(
        await read_back(bench.other, shouted) == written,
        "names that differ only in case must mean the same group",
    )
    require(await owners(bench.store, group) == {}, "a checkpoint must not look like an owner")
