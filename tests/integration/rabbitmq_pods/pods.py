"""Pods ``consumer-0`` to ``consumer-3`` on partition queues: scaled, killed, frozen."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from eventproc.errors import SourceUnavailableError
from eventproc.sources.rabbitmq import QueuePublisher
from tests.integration.rabbitmq_pods.findings import Findings, find
from tests.servers.rabbitmq_broker import RabbitMqBroker

ROOT: Final = Path(__file__).parents[3]
QUEUES: Final = 12
KEYS: Final = 480
PUBLISHING_TASKS: Final = 48
PLANNED_EXPIRATION_S: Final = 20
"""Where nothing dies: long enough for a machine that other work keeps busy."""

IDLE_MAX_S: Final = 90.0
"""A run without any progress for so long has failed."""


class Publisher(threading.Thread):
    """Publishes the orders of all keys; each waits for the confirmation of the one before it."""

    def __init__(self, url: str, prefix: str, count: int, rate: float) -> None:
        """*rate*: how many messages a second at most."""
        super().__init__(daemon=True)
        self._url, self._prefix, self._rate = url, prefix, rate
        self.count = count
        self.published: Counter[str] = Counter()
        self.twice: set[tuple[str, int]] = set()
        """Messages that were published again because no confirmation came."""

        self.error: BaseException | None = None

    def run(self) -> None:
        """Publish all."""
        try:
            asyncio.run(self._publish_all())
        except BaseException as error:  # noqa: BLE001 - raised by the scenario
            self.error = error

    async def _publish_all(self) -> None:
        publisher = QueuePublisher(self._url, prefix=self._prefix, count=QUEUES)
        await publisher.open()
        began_s = time.monotonic()
        each = -(-self.count // KEYS)

        async def publish_keys(first: int) -> None:
            for number in range(each):
                for key in range(first, KEYS, PUBLISHING_TASKS):
                    if number * KEYS + key < self.count:
                        due_s = began_s + (number * KEYS + key) / self._rate
                        await asyncio.sleep(max(0.0, due_s - time.monotonic()))
                        await self._publish(publisher, f"order-{key}", number)

        await asyncio.gather(*(publish_keys(first) for first in range(PUBLISHING_TASKS)))
        await publisher.close()

    async def _publish(self, publisher: QueuePublisher, key: str, number: int) -> None:
        while True:
            try:
                await publisher.publish(b"%d" % number, key=key)
            except SourceUnavailableError:
                self.twice.add((key, number))
                await asyncio.sleep(0.2)
            else:
                self.published[key] += 1
                return


class Pods:
    """The pods of one StatefulSet, as processes."""

    def __init__(self, place: Path, broker: RabbitMqBroker, prefix: str, **settings: Any) -> None:
        """Start nothing yet."""
        self.place, self.broker, self.prefix = place, broker, prefix
        self.settings = settings
        self.running: dict[int, tuple[str, subprocess.Popen[bytes]]] = {}
        self.journals: dict[str, Path] = {}
        self.ended: dict[str, int] = {}
        self.frozen: dict[str, tuple[int, int]] = {}
        self.events: Counter[str] = Counter()
        self._read: dict[str, int] = {}
        self._count = 0

    def scale(self, replicas: int) -> None:
        """Start the pods that are missing, and stop those with the highest ordinals."""
        scale = self.place / f"{self.prefix}.db.replicas"
        scale.with_suffix(".new").write_text(str(replicas))
        scale.with_suffix(".new").rename(scale)
        for ordinal in range(replicas):
            if ordinal not in self.running:
                self.start(ordinal)
        surplus = [self.running.pop(o) for o in sorted(self.running) if o >= replicas]
        for _, popen in surplus:
            popen.terminate()
        for name, popen in surplus:
            assert popen.wait(60) == 0, f"{name} ended with {popen.returncode}"
            popen.communicate()

    def start(self, ordinal: int) -> None:
        """Start a pod; its name stays, and each of its processes has a journal of its own."""
        name = f"consumer-{ordinal}.{len(self.journals)}"
        self.journals[name] = journal = self.place / f"{self.prefix}-{name}.journal"
        journal.touch()
        with (self.place / "output").open("ab") as output:
            popen = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.integration.rabbitmq_pods.worker"),
                    *(self.broker.url, self.prefix, str(QUEUES)),
                    *(str(self.place / f"{self.prefix}.db"), f"consumer-{ordinal}"),
                    *(str(journal), json.dumps(self.settings)),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                cwd=ROOT,
            )
        assert popen.stdout is not None
        assert popen.stdout.readline() == b"ready\n", f"{name} did not start: {self.output()}"
        self.running[ordinal] = name, popen

    def output(self) -> str:
        """Return the last lines that the pods printed."""
        return "\n".join((self.place / "output").read_text().splitlines()[-20:])

    def kill(self, ordinal: int) -> None:
        """Kill a pod, and start it again."""
        self.events["kill"] += 1
        name, popen = self.running.pop(ordinal)
        popen.kill()
        popen.communicate()
        self.ended[name] = time.monotonic_ns()
        self.start(ordinal)

    def freeze(self, ordinal: int, for_s: float) -> None:
        """Suspend a pod for some time."""
        self.events["freeze"] += 1
        name, popen = self.running[ordinal]
        popen.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, popen.pid, os.WSTOPPED)
        frozen_at = time.monotonic_ns()  # No call begins after this.
        time.sleep(for_s)
        self.frozen[name] = frozen_at, time.monotonic_ns()
        popen.send_signal(signal.SIGCONT)

    def restart_broker(self) -> None:
        """Kill the broker, and start it again."""
        self.events["broker killed"] += 1
        self.broker.kill()
        self.broker.start()

    def handled(self) -> int:
        """Return how many messages were handled until now."""
        for name, path in self.journals.items():
            with path.open("rb") as journal:
                journal.seek(self._read.get(name, 0))
                for line in journal:
                    if not line.endswith(b"\n"):
                        break
                    self._read[name] = self._read.get(name, 0) + len(line)
                    self._count += line.startswith(b"handled")
        return self._count

    def until_handled(self, count: int, publisher: Publisher) -> None:
        """Wait until so many messages were handled."""
        newest, since_s = -1, time.monotonic()
        while (now := self.handled()) < count:
            if publisher.error is not None:
                raise publisher.error
            if now != newest:
                newest, since_s = now, time.monotonic()
            waited_s = time.monotonic() - since_s
            assert waited_s < IDLE_MAX_S, f"{now} of {count} handled, no progress: {self.output()}"
            time.sleep(0.1)

    def until_all(self, publisher: Publisher, depth: Callable[[], int]) -> None:
        """Wait until everything was published and nothing is left in the queues."""
        publisher.join()
        if publisher.error is not None:
            raise publisher.error
        newest, since_s = -1, time.monotonic()
        while depth() > 0 or self.handled() < publisher.count:
            if (now := self.handled()) != newest:
                newest, since_s = now, time.monotonic()
            assert time.monotonic() - since_s < IDLE_MAX_S, f"{now} handled: {self.output()}"
            time.sleep(0.5)

    def close(self) -> None:
        """Kill what still runs."""
        for _, popen in self.running.values():
            popen.kill()
            popen.communicate()

    def find(self, publisher: Publisher) -> Findings:
        """Judge the journals."""
        return find(
            self.journals,
            publisher.published,
            published_twice=publisher.twice,
            ended=self.ended,
            frozen=self.frozen,
        )


def depth_of(broker: RabbitMqBroker, prefix: str) -> int:
    """Return how many messages wait in the queues."""
    from eventproc.sources.rabbitmq import RabbitQueues  # noqa: PLC0415

    async def ask() -> int:
        async with RabbitQueues(broker.url, prefix=prefix, count=QUEUES) as source:
            found = [await source.partition_properties(p) for p in await source.partition_ids()]
        return sum(one.last_enqueued_sequence_number + 1 for one in found)

    return asyncio.run(ask())


def planned(
    place: Path, broker: RabbitMqBroker, count: int, rate: float, **settings: Any
) -> tuple[Pods, Publisher]:
    """Scale 2-4-1-3 while orders come."""
    pods = Pods(place, broker, "Planned", expiration_s=PLANNED_EXPIRATION_S, **settings)
    publisher = Publisher(broker.url, pods.prefix, count, rate)
    publisher.start()
    try:
        for turn, replicas in enumerate((2, 4, 1, 3)):
            pods.until_handled(count * turn // 5, publisher)
            pods.scale(replicas)
        pods.until_all(publisher, lambda: depth_of(broker, pods.prefix))
        pods.scale(0)
    finally:
        pods.close()
    return pods, publisher


def disturbed(
    place: Path,
    broker: RabbitMqBroker,
    count: int,
    rate: float,
    *,
    kills: int,
    **settings: Any,
) -> tuple[Pods, Publisher]:
    """Kill pods, freeze one, and kill the broker, while orders come and the group is scaled."""
    rng = Random(0)
    pods = Pods(place, broker, "Disturbed", **settings)
    publisher = Publisher(broker.url, pods.prefix, count, rate)
    publisher.start()
    steps: list[Callable[[], None]] = [
        *[lambda: pods.kill(rng.choice(sorted(pods.running)))] * kills,
        *(partial(pods.scale, count) for count in (4, 1, 3)),
    ]
    steps.insert(kills // 2, lambda: pods.freeze(rng.choice(sorted(pods.running)), 9))
    steps.insert(kills // 2 + 2, pods.restart_broker)
    try:
        pods.scale(3)
        for turn, step in enumerate(steps):
            pods.until_handled(count * (turn + 1) // (len(steps) + 2), publisher)
            step()
        pods.until_all(publisher, lambda: depth_of(broker, pods.prefix))
        pods.scale(0)
    finally:
        pods.close()
    return pods, publisher
