"""Consumers are killed while files are hidden, cut and copied, and the hub forgets.

Run alone: ``python -m tests.integration.capture 10_000_000``.
"""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from textwrap import dedent
from typing import Final

from eventproc.emulator import (
    CaptureConfiguration,
    EmulatorConfiguration,
    EmulatorServer,
    Retention,
    hubs_of,
)
from eventproc.emulator._amqp.message import EventDraft

PARTITIONS: Final = 4
CONSUMERS: Final = 2
KEPT: Final = 20_000
"""Events that the hub keeps in each partition."""
KILLS_MIN: Final = 4
"""A storm goes on until as many consumers were ended, however fast the machine is."""

_HANDLER: Final = """
    from eventproc import PartitionHandler

    class Journal(PartitionHandler):
        async def process_events(self, context, events):
            numbers = [int(event.body) for event in events]
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
            assert [event.sequence_number for event in events] == numbers
            with open(f"journal-{context.partition_id}", "a") as file:
                file.write(f"{numbers[0]} {numbers[-1]}\\n")
"""


class Storm:
    """One run, in a folder of its own."""

    def __init__(
        self, folder: Path, event_count: int, seed: int, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self.folder = folder
        self._say = say
        self.per_partition = event_count // PARTITIONS
        self.kill_count = self.mischief_count = 0
        self._random = random.Random(seed)
        self._captured = folder / "captured"
        self._consumers: list[subprocess.Popen[bytes]] = []
        self._env: dict[str, str] = {}

    async def run(self) -> None:
        """Publish, kill and wait until every event was handled; raises if one was lost."""
        (self.folder / "shop.py").write_text(dedent(_HANDLER))
        configuration = EmulatorConfiguration(
            hubs=hubs_of({"orders": PARTITIONS}),
            port=0,
            retention=Retention(events_max=KEPT),
            hub_age=timedelta(hours=1),
            capture=CaptureConfiguration(
                folder=self._captured, interval=timedelta(seconds=2), bytes_max=4_000_000
            ),
        )
        self._captured.mkdir()
        async with EmulatorServer(configuration) as server:
            self._env = {
                **os.environ,
                "EVENTPROC_CONNECTION_STRING": server.connection_string,
                "EVENTPROC_CAPTURE": f"folder:{self._captured}",
            }
            publishing = asyncio.create_task(self._publish(server))
            try:
                # A group that begins before the first file has no way to know of it.
                while not await asyncio.to_thread(self._has_first_files):  # noqa: ASYNC110 - files
                    await asyncio.sleep(0.1)
                while not (publishing.done() and self._is_complete()):
                    self._start_missing()
                    await asyncio.sleep(self._random.uniform(1, 6))
                    await self._disturb()
                    self._say(
                        f"handled {sum(self.ends()):,} of {self.per_partition * PARTITIONS:,}"
                    )
                    if publishing.done():
                        publishing.result()
            finally:
                publishing.cancel()
                for consumer in self._consumers:
                    consumer.kill()
                    consumer.wait()

    async def _publish(self, server: EmulatorServer) -> None:
        """Publish in bursts that are longer than what the hub keeps."""
        partitions = server.namespace.hub("orders").partitions
        for first in range(0, self.per_partition, 500):
            bodies = [b"%d" % n for n in range(first, min(first + 500, self.per_partition))]
            drafts = [EventDraft(b"", b"", 0, _section(body), None) for body in bodies]
            for partition in partitions:
                partition.publish(drafts)
            await asyncio.sleep(1 if first % 50_000 == 0 else 0.005)

    def _has_first_files(self) -> bool:
        files = (path for path in self._captured.rglob("*.avro") if path.stat().st_size > KEPT)
        return len({path.relative_to(self._captured).parts[2] for path in files}) == PARTITIONS

    def _start_missing(self) -> None:
        self._consumers = [each for each in self._consumers if each.poll() is None]
        while len(self._consumers) < CONSUMERS:
            log = (self.folder / "consumers.log").open("ab")
            arguments = ["--eventhub", "orders", "--store", "sqlite:group.db"]
            pace = ["--interval", "1s", "--expiration", "5s", "--shutdown-timeout", "4s"]
            consumer = subprocess.Popen(
                [sys.executable, "-m", "eventproc", "run", "shop:Journal", *arguments, *pace],
                cwd=self.folder,
                env=self._env,
                stdout=log,
                stderr=log,
            )
            log.close()
            self._consumers.append(consumer)

    async def _disturb(self) -> None:
        choice = self._random.random()
        if choice < 0.4:
            consumer = self._random.choice(self._consumers)
            consumer.send_signal(signal.SIGKILL if choice < 0.3 else signal.SIGTERM)
            self.kill_count += 1
            return
        files = sorted(self._captured.rglob("*.avro"))
        if choice > 0.8 or not all(self.ends()):  # The earliest event is that of the first file.
            return
        self.mischief_count += 1
        file, aside = self._random.choice(files), self.folder / "aside"
        if choice < 0.55:  # Late.
            file.rename(aside)
            await asyncio.sleep(2)
        elif choice < 0.7:  # Damaged, and restored.
            shutil.copy(file, aside)
            os.truncate(file, file.stat().st_size // 2)
            await asyncio.sleep(2)
        else:  # Twice.
            name = f"{file.stem[:-1]}{(int(file.stem[-1]) + 1) % 10}.avro"
            twin = file.with_name(name)
            if not twin.exists():
                shutil.copy(file, twin.with_suffix(".part"))
                twin.with_suffix(".part").rename(twin)
            return
        aside.rename(file)

    def _is_complete(self) -> bool:
        handled = all(end == self.per_partition for end in self.ends())
        return handled and self.kill_count >= KILLS_MIN

    def ends(self) -> Sequence[int]:
        """Return for each partition the number after the last one that was handled.

        Raises:
            AssertionError: events before it were not handled.
        """
        return [self._end(self.folder / f"journal-{p}") for p in range(PARTITIONS)]

    def _end(self, journal: Path) -> int:
        end = 0
        for line in journal.read_text().splitlines() if journal.exists() else ():
            first, last = map(int, line.split())
            assert first <= end, f"{journal.name}: {end} to {first - 1} are lost before {line}"
            end = max(end, last + 1)
        return end

    def repeated(self) -> int:
        """Return how many events were handled again."""
        handled = 0
        for partition in range(PARTITIONS):
            lines = (self.folder / f"journal-{partition}").read_text().splitlines()
            handled += sum(int(line.split()[1]) - int(line.split()[0]) + 1 for line in lines)
        return handled - self.per_partition * PARTITIONS


def _section(body: bytes) -> bytes:
    return b"\x00\x53\x75\xa0" + bytes([len(body)]) + body


def main() -> None:
    """Run one storm with as many events as the argument says."""
    count, seed = int(sys.argv[1]), random.randrange(10**6)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        storm = Storm(Path(folder), count, seed, lambda line: print(line, flush=True))
        asyncio.run(storm.run())
        print(
            f"{count} events in {time.monotonic() - began:.0f} s, seed {seed}: "
            f"{storm.kill_count} consumers ended, {storm.mischief_count} files hidden, cut or "
            f"copied; 0 lost, {storm.repeated()} repeated"
        )
