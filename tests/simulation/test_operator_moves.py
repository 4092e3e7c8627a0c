"""An operator moves checkpoints while processors start, stop, stall and lose answers."""

import asyncio
from datetime import timedelta
from random import Random

from checkpointstores.memory import MemoryCheckpointStore
from eventproc import Checkpoint, CheckpointPolicy, StoreUnavailableError
from eventproc._core.delivery.checkpoints import is_moved_by_operator
from eventproc.admin import CheckpointMove, move_checkpoint
from eventproc.testing import FaultyCheckpointStore, StoreFaults
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Noting, Setup

PARTITIONS = ("0", "1", "2")
EVENTS = 300
MOVES = 6
EXPIRATION = timedelta(seconds=30)
EVERY = CheckpointPolicy(max_events=7, interval=timedelta(seconds=2))
FAULTS = StoreFaults(
    delay_max=timedelta(seconds=0.5), request_lost_rate=0.05, answer_lost_rate=0.05
)


class RecordedCheckpoints(dict[str, Checkpoint]):
    """The store's checkpoints, and every version of them."""

    def __init__(self) -> None:
        super().__init__()
        self.history: list[Checkpoint] = []

    def __setitem__(self, partition_id: str, checkpoint: Checkpoint) -> None:
        super().__setitem__(partition_id, checkpoint)
        self.history.append(checkpoint)


class Paced(Noting):
    """Takes a moment for each batch, and counts the events since the last move in its state."""

    async def process_events(self, context, events):
        """Count, wait, record."""
        await asyncio.sleep(0.02 * len(events))
        context.state = str(int(context.state or 0) + len(events)).encode()
        await super().process_events(context, events)


async def run_processors(setup, rng, owner_id, until_s):
    """Run one processor after another under one owner id; each serves for a while."""
    loop = asyncio.get_running_loop()
    while loop.time() < until_s:
        processor = setup.processor(
            lambda: Paced(setup),
            owner_id,
            checkpoint_policy=EVERY,
            batch_size_max=20,
            ownership_expiration=EXPIRATION,
            load_balancing_interval=timedelta(seconds=5),
        )
        async with processor:
            setup.store_by_owner[owner_id].faults = FAULTS
            await asyncio.sleep(rng.uniform(5, 60))
            setup.store_by_owner[owner_id].faults = StoreFaults()


async def operate(setup, rng):
    """Move checkpoints anywhere, through a store that loses requests and answers."""
    store = FaultyCheckpointStore(MemoryCheckpointStore(setup.account), rng, FAULTS)
    await store.open()
    for number in range(MOVES):
        await asyncio.sleep(rng.uniform(1, 15))
        to = rng.randrange(EVENTS)
        event = setup.hub.events(PARTITIONS[number % 3])[to]
        target = CheckpointMove(
            partition_id=PARTITIONS[number % 3],
            offset=event.offset,
            sequence_number=event.sequence_number,
        )
        while True:
            try:
                await move_checkpoint(
                    store, setup.group, target, token=str(number), expiration=EXPIRATION
                )
                break
            except StoreUnavailableError:
                await asyncio.sleep(1)


def test_processors_continue_from_a_moved_checkpoint(seed):
    """The checkpoint after an operator's repeats its position, so no earlier progress is stored.

    In the end, state counts all events above the last move once each.
    """

    async def scenario():
        setup = Setup(len(PARTITIONS))
        recorded = RecordedCheckpoints()
        setup.account.records(setup.group).checkpoint_by_partition = recorded
        for partition_id in PARTITIONS:
            setup.publish(EVENTS, partition_id)
        rng = Random(seed)
        async with asyncio.TaskGroup() as group:
            for owner_id in "ab":
                group.create_task(run_processors(setup, Random(f"{seed}{owner_id}"), owner_id, 120))
            await operate(setup, rng)
        async with setup.processor(lambda: Paced(setup), "c", checkpoint_policy=EVERY):
            await asyncio.sleep(120)
        return recorded

    recorded = run_virtual(scenario())

    for partition_id in PARTITIONS:
        history = [c for c in recorded.history if c.partition_id == partition_id]
        moves = [at for at, stored in enumerate(history) if is_moved_by_operator(stored)]
        pairs = [(history[at], history[at + 1]) for at in moves if at + 1 < len(history)]
        counted = EVENTS - 1 - (history[moves[-1]].sequence_number or 0)

        for moved, following in pairs:
            if not is_moved_by_operator(following):
                assert following.sequence_number == moved.sequence_number
                assert following.state is None
        assert history[-1].sequence_number == EVENTS - 1
        assert int(history[-1].state or 0) == counted
