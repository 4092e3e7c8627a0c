"""The pods of a StatefulSet share RabbitMQ's partition queues: scaled, one killed, no order lost.

    make demo-rabbitmq

It plays the part of Kubernetes, starts each pod as a process (``eventproc run``), and publishes
orders all the time. At the end it counts the orders that were lost or overtaken. It starts a
RabbitMQ from the tests of this repository, which `make rabbitmq` fetches, so it runs in a clone.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc.models import ConsumerGroup
from eventproc.sources.rabbitmq import QueuePublisher, RabbitQueues
from examples.rabbitmq_statefulset.pod import HANDLED, REPLICAS
from tests.servers.rabbitmq_broker import RabbitMqBroker

QUEUES = 12
CUSTOMERS = 200
ORDERS_PER_SECOND = 1000
POLL_S = 0.2
STEP_MAX_S = 120.0

RUN = [
    *("-m", "eventproc", "run", "examples.rabbitmq_statefulset.pod:Orders"),
    *("--eventhub", "OrderEvents", "--placement", "Published:Ordinal"),
    *("--roster", "examples.rabbitmq_statefulset.pod:Replicas"),
    *("--interval", "1s", "--expiration", "6s", "--shutdown-timeout", "10s", "--stop-at-eof"),
]

MEANING = {
    "published": "orders, each confirmed by the broker",
    "lost": "orders that no pod has handled",
    "out of order": "orders that were handled before an earlier one of the same customer",
    "handled again": "orders that came a second time",
    "unexplained": "of these, not because the pod that had handled them was killed",
}


class StatefulSet:
    """Starts and ends pods, as Kubernetes does: ``consumer-0``, ``consumer-1`` ..."""

    def __init__(self, folder: Path, broker_url: str) -> None:
        self._folder = folder
        self._environment = {
            **os.environ,
            "DEMO_FOLDER": str(folder),
            "EVENTPROC_CONNECTION_STRING": f"{broker_url}?queues={QUEUES}",
            "EVENTPROC_STORE": f"sqlite:{folder / 'group.db'}",
        }
        self.replicas = 0
        self.pods: dict[str, subprocess.Popen[bytes]] = {}
        self.ending: list[subprocess.Popen[bytes]] = []
        self.killed: list[str] = []
        """Processes that were killed, by their names in the file of handled orders."""

    def scale(self, replicas: int) -> None:
        """Change how many pods there are. Those with the highest numbers end first."""
        self.replicas = replicas
        written = self._folder / "replicas.new"
        written.write_text(str(replicas), "ascii")
        written.replace(self._folder / REPLICAS)
        names = [f"consumer-{number}" for number in range(replicas)]
        for name in sorted(self.pods.keys() - set(names), reverse=True):
            self.pods[name].terminate()
            self.ending.append(self.pods.pop(name))
        for name in names:
            if name not in self.pods:
                self.start(name)

    def start(self, name: str) -> None:
        """Start a pod."""
        with (self._folder / f"{name}.log").open("ab") as log:
            self.pods[name] = subprocess.Popen(
                [sys.executable, *RUN],
                env={**self._environment, "POD_NAME": name},
                stdin=subprocess.PIPE,  # ends when this program ends, however it does
                stderr=log,
            )

    def kill(self, name: str) -> None:
        """End a pod without notice: SIGKILL."""
        with self.pods.pop(name) as pod:
            pod.kill()
        self.killed.append(f"{name}.{pod.pid}")

    def check(self) -> None:
        """End this program if a pod has failed; show the end of its log."""
        for name, pod in self.pods.items():
            if pod.poll() is not None:
                log = (self._folder / f"{name}.log").read_text("utf-8")
                sys.exit(f"{name} ended with exit code {pod.returncode}: {log[-2000:]}")
        if any(pod.poll() for pod in self.ending):
            sys.exit("a pod that was asked to end did not end in order")

    def end(self) -> None:
        """End all pods that are left."""
        for pod in [*self.pods.values(), *self.ending]:
            with pod:
                pod.kill()


class Handled:
    """Reads the file of handled orders while pods write to it."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self._file = path.open("rb")
        self._rest = b""
        self.orders: list[tuple[str, str, int]] = []
        """Process, customer, and number of the order among those of the customer."""

    def read(self) -> set[str]:
        """Read what is new; return the processes that wrote it."""
        lines, _, self._rest = (self._rest + self._file.read()).rpartition(b"\n")
        fields = map(str.split, lines.decode().splitlines())
        new = [(process, customer, int(number)) for process, customer, number in fields]
        self.orders += new
        return {process for process, _, _ in new}

    def accounts(self, published: int, killed: list[str]) -> dict[str, int]:
        """Return what became of the orders that were published."""
        first: dict[tuple[str, int], str] = {}
        following: Counter[str] = Counter()
        found = dict.fromkeys(MEANING, 0)
        for process, customer, number in self.orders:
            by = first.setdefault((customer, number), process)
            if number < following[customer]:
                found["handled again"] += 1
                found["unexplained"] += by not in killed
            else:
                found["out of order"] += number > following[customer]
                following[customer] = number + 1
        return found | {"published": published, "lost": published - len(first)}

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Demo:
    """The steps, and what is seen after each."""

    def __init__(self, folder: Path, broker_url: str, stack: ExitStack) -> None:
        self._broker_url = broker_url
        self._store = SqliteCheckpointStore(folder / "group.db")
        self._pods = StatefulSet(folder, broker_url)
        stack.callback(self._pods.end)
        self._handled = Handled(folder / HANDLED)
        stack.callback(self._handled.close)
        source = RabbitQueues(broker_url, prefix="OrderEvents", count=QUEUES)
        self._group = ConsumerGroup(
            fully_qualified_namespace=source.fully_qualified_namespace,
            eventhub_name=source.eventhub_name,
        )
        self._owners: dict[int, str | None] = {}
        self._published = 0
        self._is_enough = asyncio.Event()
        self._begun_s = time.monotonic()

    async def play(self) -> bool:
        """Play the steps; return whether all orders were handled, and in order."""
        async with self._store, asyncio.TaskGroup() as tasks:
            publishing = tasks.create_task(self._publish())
            self._pods.scale(2)
            await self._settled("2 pods")
            self._pods.scale(4)
            await self._settled("scaled from 2 to 4")
            self._pods.kill("consumer-1")
            await self._settled("consumer-1 is killed")
            self._pods.start("consumer-1")
            await self._settled("consumer-1 is back")
            self._pods.scale(1)
            await self._settled("scaled from 4 to 1")
            self._pods.scale(3)
            await self._settled("scaled from 1 to 3")
            self._is_enough.set()
            await publishing
            await self._until(lambda: self._accounts["lost"] == 0, "the rest is handled")
        print()
        for name, number in self._accounts.items():
            print(f"{name:<14} {number:>7,}  {MEANING[name]}")
        return not any(self._accounts[name] for name in ("lost", "out of order", "unexplained"))

    @property
    def _accounts(self) -> dict[str, int]:
        return self._handled.accounts(self._published, self._pods.killed)

    async def _publish(self) -> None:
        """Publish an order of each customer, wait until all are confirmed, and go on."""
        url = self._broker_url
        async with QueuePublisher(url, prefix="OrderEvents", count=QUEUES) as publisher:
            for number in count():
                await asyncio.gather(
                    *(publisher.publish(b"%d" % number, key=f"c{c}") for c in range(CUSTOMERS))
                )
                self._published += CUSTOMERS
                due_s = self._begun_s + self._published / ORDERS_PER_SECOND
                try:
                    async with asyncio.timeout(max(0.0, due_s - time.monotonic())):
                        await self._is_enough.wait()
                except TimeoutError:
                    continue
                return

    async def _settled(self, what: str) -> None:
        """Wait until each queue is where it should be, and each pod handles orders."""
        before, at_work = self._owners, set[str]()

        def is_settled() -> bool:
            pods = {f"{name}.{pod.pid}" for name, pod in self._pods.pods.items()}
            at_work.update(self._handled.read())
            have_ended = all(pod.poll() is not None for pod in self._pods.ending)
            return have_ended and pods <= at_work and all(map(self._is_right, range(QUEUES)))

        await self._until(is_settled, what)
        print(f"{'':9}{self._shares()}", flush=True)
        if before:
            moved = sum(before[queue] != owner for queue, owner in self._owners.items())
            print(f"{'':9}{moved} of {QUEUES} queues have moved", flush=True)

    def _is_right(self, queue: int) -> bool:
        """Whether a queue belongs to the pod of its block or, if that is away, to another one."""
        wanted = f"consumer-{queue * self._pods.replicas // QUEUES}"
        owner = self._owners.get(queue)
        return owner == wanted if wanted in self._pods.pods else owner in self._pods.pods

    def _shares(self) -> str:
        """Return the queues of each pod: ``consumer-0: 0 1 2   consumer-1: 3 4 5``."""
        queues: dict[str, list[str]] = {}
        for queue, owner in sorted(self._owners.items()):
            queues.setdefault(str(owner), []).append(str(queue))
        return "   ".join(f"{pod}: {' '.join(queues[pod])}" for pod in sorted(queues))

    async def _until(self, is_so: Callable[[], bool], what: str) -> None:
        """Say what happens, and look at the group until it is so."""
        begun_s = time.monotonic()
        print(f"{begun_s - self._begun_s:6.1f} s {what}", flush=True)
        while True:
            self._pods.check()
            self._handled.read()
            ownerships = (await self._store.list_ownership(self._group)).ownerships
            self._owners = {int(o.partition_id): o.owner_id for o in ownerships}
            if is_so():
                return
            if time.monotonic() - begun_s > STEP_MAX_S:
                sys.exit(f"not so after {STEP_MAX_S:.0f} s; the queues: {self._shares()}")
            await asyncio.sleep(POLL_S)


def main() -> int:
    """Start the broker, play it, and return the exit code."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="statefulset-")))
        broker = stack.enter_context(RabbitMqBroker())
        return 0 if asyncio.run(Demo(folder, broker.url, stack).play()) else 1


if __name__ == "__main__":
    sys.exit(main())
