"""Partitions move between clients while a program buffers: nothing is lost, nothing comes twice."""

import asyncio
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from eventproc.emulator import EventHubsEmulator
from tests.integration.compat.aio_programs import CheckpointingReceiving, Receiving
from tests.integration.compat.sides import AioOwnStore, Place
from tests.integration.compat.threads_programs import Receiving as ThreadsReceiving

# Azure's client does not close all of its connections.
pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

PARTITIONS = [str(number) for number in range(8)]


@pytest.fixture(name="place")
def _place(storage: str) -> Iterator[Place]:
    with EventHubsEmulator({"hub": len(PARTITIONS)}) as emulator:
        yield Place("eventproc", emulator, "hub", storage)


class Buffering(Receiving):
    """Keeps events in a buffer, writes them out at the close, and stores its position then."""

    written: Counter[tuple[str, int]]

    def __init__(self, client: Any, written: Counter[tuple[str, int]]) -> None:
        super().__init__(client)
        self.written = written
        self.buffer: dict[str, list[int]] = {}

    async def handle(self, context: Any, event: Any) -> None:
        self.buffer.setdefault(context.partition_id, []).append(event.sequence_number)
        await asyncio.sleep(0.001)

    async def on_partition_close(self, context: Any, reason: Any) -> None:
        await super().on_partition_close(context, reason)
        await asyncio.sleep(0.05)
        numbers = self.buffer.pop(context.partition_id, [])
        self.written.update((context.partition_id, number) for number in numbers)
        await context.update_checkpoint()


@pytest.mark.integration
@pytest.mark.long
@pytest.mark.parametrize("has_own_store", [False, True])
def test_a_buffer_loses_nothing_when_clients_join_and_leave(place, has_own_store):
    """With the blob store nothing comes twice either; by ownership alone, something may."""
    written: Counter[tuple[str, int]] = Counter()
    own = AioOwnStore()
    sent = 0

    async def publish() -> None:
        nonlocal sent
        await asyncio.to_thread(place.publish, ["x"] * 5, *PARTITIONS)
        sent += 5

    async def run() -> None:
        def client() -> Any:
            return place.aio_client(checkpoint_store=own if has_own_store else place.blob_store())

        def owned(receiving: Receiving) -> int:
            opened = [s for s in receiving.by_partition.values() if "initialize" in s]
            return sum(
                s.count("initialize") > sum(str(e).startswith("close") for e in s) for s in opened
            )

        members = [Buffering(client(), written).begin()]
        await members[0].until(lambda: owned(members[0]) == 8)
        await publish()
        members.append(Buffering(client(), written).begin())
        await members[1].until(lambda: owned(members[0]) == owned(members[1]) == 4)
        await publish()
        await asyncio.sleep(1.0)
        await members[0].end()
        await members[1].until(lambda: owned(members[1]) == 8)
        await publish()
        await members[1].until(lambda: all(sent - 1 in members[1].numbers(p) for p in PARTITIONS))
        await members[1].end()

    asyncio.run(run())

    assert set(written) == {(p, number) for p in PARTITIONS for number in range(sent)}
    if not has_own_store:
        assert set(written.values()) == {1}


@pytest.mark.integration
@pytest.mark.long
def test_threads_hand_over_after_the_close_in_the_calling_thread(place):
    """Each event is checkpointed: nothing comes twice when a second client joins."""

    class Checkpointing(ThreadsReceiving):
        def handle(self, context: Any, event: Any) -> None:
            context.update_checkpoint(event)

    place.publish(["x"] * 5, *PARTITIONS)
    first = Checkpointing(place.threads_client(checkpoint_store=place.blob_store())).begin()
    first.until(lambda: all(4 in first.numbers(p) for p in PARTITIONS))
    second = Checkpointing(place.threads_client(checkpoint_store=place.blob_store())).begin()
    second.until(lambda: sum("initialize" in s for s in second.by_partition.values()) == 4)
    place.publish(["x"] * 5, *PARTITIONS)
    both = (first, second)
    first.until(lambda: all(9 in first.numbers(p) + second.numbers(p) for p in PARTITIONS))
    for each in both:
        each.end()

    for partition_id in PARTITIONS:
        assert sorted(first.numbers(partition_id) + second.numbers(partition_id)) == [*range(10)]
    assert [each.outcome for each in both] == [[None], [None]]


@pytest.mark.integration
@pytest.mark.long
def test_a_group_goes_to_our_client_and_back(place):
    """Each client begins where the other one stopped: the blobs are the same."""
    found: list[list[int]] = []

    async def read(side: str) -> None:
        here = Place(side, place.emulator, place.hub, place.storage, place.container)
        receiving = CheckpointingReceiving(here.aio_client(checkpoint_store=here.blob_store()))
        receiving.begin()
        last = 4 + 5 * len(found)
        await receiving.until(lambda: receiving.stored[-1:] == [last])
        await receiving.end()
        found.append(receiving.numbers())

    for side in ("azure", "eventproc", "azure", "eventproc"):
        place.publish(["x"] * 5)
        asyncio.run(read(side))

    assert found == [[*range(5 * n, 5 * n + 5)] for n in range(4)]


INTERRUPTED = """
    import sys
    from eventproc.compat.azure_eventhub import EventHubConsumerClient

    def on_event(context, event):
        print("event", flush=True)

    def on_close(context, reason):
        print(reason.name, flush=True)

    client = EventHubConsumerClient.from_connection_string(sys.argv[1], "$Default")
    try:
        with client:
            client.receive(
                on_event, partition_id="0", starting_position="-1", on_partition_close=on_close
            )
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.integration
@pytest.mark.long
def test_ctrl_c_closes_the_partitions_of_the_client_for_threads(place):
    """Then ``receive`` raises it."""
    place.publish(["x"])
    command = [sys.executable, "-c", textwrap.dedent(INTERRUPTED), place.connection_string]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "event\n"
        began_s = time.monotonic()
        program.send_signal(signal.SIGINT)

        assert program.stdout.read() == "SHUTDOWN\ninterrupted\n"
    assert program.returncode == 0
    assert time.monotonic() - began_s < 10
