"""How many events are delivered again after a kill?

    python benchmarks/repeated.py                  # ten kills of each policy
    python benchmarks/repeated.py --store blob     # in Azurite in place of SQLite
    python benchmarks/repeated.py --quick

A process reads a backlog of two partitions from the emulator, and its handler only appends the
number of each event to a file. It is killed while both partitions are served. The events that it
handled and no checkpoint covers are counted in each partition: the next owner handles them again.

*At most* is what the policy promises, even while the store fails: ``max_uncommitted_events``, and
the events of one call.
"""

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Final

from benchmarks._hub import emulator_with, equal_events, fill
from benchmarks._rows import Row, options, print_progress, print_rows
from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import (
    CheckpointPolicy,
    CheckpointStore,
    ConsumerGroup,
    EventProcessor,
    EventProcessorConfig,
    PartitionContext,
    PartitionHandler,
    ReceivedEvent,
)
from eventproc.sources.eventhubs import EventHubSource
from eventproc.testing import Azurite

ROOT: Final = Path(__file__).parents[1]
PARTITIONS: Final = ("0", "1")
EVENTS: Final = 400_000
BEGUN: Final = 5_000
KILL_WITHIN_S: Final = 0.5
TIMEOUT_S: Final = 60
POLICIES: Final = {
    "default": CheckpointPolicy(),
    "max_events=1": CheckpointPolicy(max_events=1),
    "max_uncommitted_events=1000": CheckpointPolicy(max_uncommitted_events=1_000),
}


class Noting(PartitionHandler):
    """Appends each event's number to the file of its partition."""

    async def initialize(self, context: PartitionContext) -> None:
        """Open the file."""
        path = os.environ["BENCH_FOLDER"] + "/" + context.partition_id
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def process_event(self, context: PartitionContext, event: ReceivedEvent) -> None:  # noqa: ARG002
        """Write at once: a kill loses no line."""
        os.write(self._file, b"%d\n" % event.sequence_number)


def store_of(address: str) -> CheckpointStore:
    """Return the store that a process and the benchmark share."""
    if address.startswith("sqlite:"):
        return SqliteCheckpointStore(address.removeprefix("sqlite:"))
    connection_string, _, container = address.rpartition("|")
    return BlobCheckpointStore.from_connection_string(
        connection_string, container, create_container=True
    )


def serve(hub: str, address: str, policy: str) -> None:
    """Be the process that is killed."""
    EventProcessor(
        source=EventHubSource.from_connection_string(hub),
        store=store_of(address),
        handler=Noting,
        config=EventProcessorConfig(checkpoint_policy=POLICIES[policy]),
    ).run()


def handled(folder: str) -> dict[str, int]:
    """Return the number of the last event that was handled in each partition that has begun."""
    files = {p: Path(folder, p) for p in PARTITIONS}
    texts = {p: file.read_bytes() for p, file in files.items() if file.exists()}
    return {p: int(text.split()[-1]) for p, text in texts.items() if text}


async def stored(hub: str, address: str) -> dict[str, int]:
    """Return the position of each checkpoint."""
    source = EventHubSource.from_connection_string(hub)
    group = ConsumerGroup(
        fully_qualified_namespace=source.fully_qualified_namespace,
        eventhub_name=source.eventhub_name,
        name="$Default",
    )
    async with store_of(address) as store:
        found = await store.list_checkpoints(group)
    return {c.partition_id: c.sequence_number or 0 for c in found}


def killed(hub: str, address: str, policy: str, pause_s: float) -> list[int]:
    """Start a process, kill it, and return how many events of each partition come again."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.repeated", "--serve", hub, address, policy],
            cwd=ROOT,
            env=os.environ | {"BENCH_FOLDER": folder},
        )
        until_s = time.monotonic() + TIMEOUT_S
        while len(found := handled(folder)) < len(PARTITIONS) or min(found.values()) < BEGUN:
            if time.monotonic() > until_s or process.poll() is not None:
                raise SystemExit(f"{policy}: it did not begin")
            time.sleep(0.01)
        time.sleep(pause_s)
        process.send_signal(signal.SIGKILL)
        process.wait()
        last, positions = handled(folder), asyncio.run(stored(hub, address))
    if max(last.values()) >= EVENTS // len(PARTITIONS) - 1:
        raise SystemExit(f"{policy}: the backlog was too small")
    return [last[p] - positions[p] for p in PARTITIONS]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--store", choices=("sqlite", "blob"), default="sqlite")
    parser.add_argument("--serve", nargs=3, metavar=("HUB", "STORE", "POLICY"), help="internal")
    given = parser.parse_args()
    if given.serve:
        serve(*given.serve)
        return
    kills, rng = 1 if given.quick else given.kills, Random(1)
    rows: list[Row] = []
    with ExitStack() as stack:
        emulator = stack.enter_context(emulator_with({"hub": len(PARTITIONS)}))
        hub = emulator.connection_strings["hub"]
        fill(hub, len(PARTITIONS), EVENTS, equal_events(b"x" * 50))
        azurite = stack.enter_context(Azurite()) if given.store == "blob" else None
        for policy, settings in POLICIES.items():
            counts: list[int] = []
            for number in range(kills):
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                address = f"sqlite:{folder}/db"
                if azurite is not None:
                    container = f"{policy.replace('_', '-').replace('=', '-')}-{number}"
                    address = f"{azurite.connection_string}|{container}"
                counts += killed(hub, address, policy, rng.uniform(0, KILL_WITHIN_S))
                print_progress(f"{policy}: {counts[-len(PARTITIONS) :]}")
            limit = (settings.max_uncommitted_events or 0) + EventProcessorConfig().batch_size_max
            rows.append(
                {
                    "policy": policy,
                    "store": given.store,
                    "kills": kills,
                    "least": min(counts),
                    "median": round(statistics.median(counts)),
                    "most": max(counts),
                    "at_most": limit,
                }
            )
    print_rows(rows, given.format)


if __name__ == "__main__":
    main()
