"""The steps of ``eventproc demo-rabbitmq``: scale, kill, freeze, drain, check.

What the group did is read from the ownership records in the store and from the journals of the
handlers, so the results do not depend on the SDK's own statistics.
"""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from eventproc.cli.demo.children import Child
from eventproc.cli.demo.rabbitmq.accounts import make_accounts
from eventproc.cli.demo.rabbitmq.api_server import STATEFUL_SET
from eventproc.cli.demo.rabbitmq.journal import CallReader
from eventproc.cli.demo.rabbitmq.orders import counts
from eventproc.cli.demo.rabbitmq.report import Report
from eventproc.cli.demo.rabbitmq.scene import PodScene, QueueScene, Scene, Step, is_settled
from eventproc.cli.demo.rabbitmq.stage import QueueStage
from eventproc.cli.demo.rabbitmq.stateful_set import StatefulSet

POLL_INTERVAL_S: Final = 0.2
SETTLED_FOR_S: Final = 1.5
"""A group counts as settled if it stays so for longer than the pods' poll interval."""

SETTLED_WITHIN_S: Final = 60.0
IDLE_MAX_S: Final = 30.0
STREAM_S: Final = 75.0
"""In how many seconds the orders are published: about as long as the steps take."""

HAS_FREEZE: Final = hasattr(signal, "SIGSTOP")


class DemoRun:
    """Runs the demo, and shows its state all the time."""

    def __init__(
        self, stage: QueueStage, *, order_count: int, show: Callable[[Scene], None]
    ) -> None:
        self._stage = stage
        self._order_count = order_count
        self._show = show
        self._pods = StatefulSet(stage)
        self._journal = CallReader(stage.folder)
        self._owners: dict[str, str | None] = dict.fromkeys(map(str, range(stage.queue_count)))
        self._handled: dict[str, set[tuple[str, int]]] = {q: set() for q in self._owners}
        self._headline = ""
        self._steps: list[Step] = []
        self._publisher: Child | None = None

    async def play(self) -> Report:
        """Run the demo, and return its report.

        Raises:
            ChildFailedError: A process failed.
        """
        try:
            self._publisher = self._stage.start_publisher(
                self._order_count, rate=self._order_count / STREAM_S
            )
            await self._scale(2)
            await self._scale(4)
            await self._kill()
            await self._scale(1)
            if HAS_FREEZE:
                await self._scale(2)
                await self._freeze()
            await self._scale(3)
            await self._drain()
            self._headline = "every order is handled: the pods stop"
            await self._stop()
            return self._report()
        finally:
            self._pods.close()

    # Observing.

    async def _poll(self) -> None:
        """Read the state of the group, and show it."""
        await asyncio.sleep(POLL_INTERVAL_S)
        self._pods.poll()
        assert self._publisher is not None
        self._publisher.check()
        stage = self._stage
        snapshot = await stage.store.list_ownership(stage.group)
        self._owners |= {o.partition_id: o.owner_id for o in snapshot.ownerships}
        for member in (await stage.store.list_members(stage.group)).members:
            self._pods.seen(member)
        for call in self._journal.read():
            self._handled[call.queue].update(call.orders)
        self._show(self._scene())

    @property
    def _handled_count(self) -> int:
        return sum(map(len, self._handled.values()))

    def _scene(self) -> Scene:
        return Scene(
            elapsed_s=self._stage.elapsed_s,
            headline=self._headline,
            total=self._order_count,
            published=max(self._stage.published(), self._handled_count),
            handled=self._handled_count,
            replicas=self._pods.replicas,
            queues=tuple(
                QueueScene(number=q, owner_id=self._owners[q], handled=len(self._handled[q]))
                for q in self._owners
            ),
            pods=tuple(
                PodScene(name=pod.name, pid=pod.process.pid, state=pod.state)
                for _, pod in sorted(self._pods.pods.items())
            ),
            steps=tuple(self._steps),
        )

    # Acting.

    async def _scale(self, replicas: int) -> None:
        before = self._pods.replicas
        self._headline = (
            f"the StatefulSet gets {replicas} pod{'s' if replicas > 1 else ''}"
            if not before
            else f"the StatefulSet is scaled from {before} to {replicas}"
        )
        self._pods.scale(replicas)
        await self._settle(f"{before} to {replicas} pods")

    async def _kill(self) -> None:
        name = self._busiest()
        self._headline = f"{name} is killed (SIGKILL), and started again by the set"
        self._pods.kill(name)
        await self._settle(f"{name} killed")

    async def _freeze(self) -> None:
        name = self._busiest()
        self._headline = f"{name} is frozen (SIGSTOP), as on a suspended machine"
        self._pods.freeze(name)
        while await asyncio.to_thread(self._stage.is_file_locked):
            self._pods.thaw(name)
            await self._poll()
            self._pods.freeze(name)
        await self._settle(f"{name} frozen", without=name)
        self._headline = f"{name} continues (SIGCONT), after its leases have expired"
        self._pods.thaw(name)
        await self._settle(f"{name} continues")

    def _busiest(self) -> str:
        """Return the running pod with the most queues."""
        owned = Counter(self._owners.values())
        running = [pod.name for pod in self._pods.pods.values() if pod.state == "running"]
        return max(running, key=lambda name: (owned[name], name))

    async def _settle(self, what: str, without: str | None = None) -> None:
        """Wait until each queue belongs to the pod that should have it, and stays there."""
        step, before = Step(what=what), dict(self._owners)
        self._steps.append(step)
        began_s, settled_s = time.monotonic(), None
        while time.monotonic() - began_s < SETTLED_WITHIN_S:
            await self._poll()
            names = {f"{STATEFUL_SET}-{n}" for n in range(self._pods.replicas)} - {without}
            if not (is_settled(self._owners, self._pods.replicas, names) and self._is_well(names)):
                settled_s = None
                continue
            settled_s = settled_s or time.monotonic()
            moves = sum(self._owners[q] != owner for q, owner in before.items())
            self._steps[-1] = replace(step, seconds=settled_s - began_s, moves=moves)
            if time.monotonic() - settled_s >= SETTLED_FOR_S:
                return
        self._steps[-1] = step

    def _is_well(self, names: set[str]) -> bool:
        """Whether these pods run, and no surplus one is left."""
        pods = {name: pod for name, pod in self._pods.pods.items() if pod.state != "frozen"}
        return pods.keys() == names and all(pod.state == "running" for pod in pods.values())

    async def _drain(self) -> None:
        """Publish the rest, and wait until all is handled or there is no progress any more."""
        self._headline = "the rest is published and handled"
        assert self._publisher is not None
        self._publisher.send_line("hurry")
        while self._publisher.exit_code is None:
            await self._poll()
        best, progress_s = -1, time.monotonic()
        while self._handled_count < self._order_count:
            await self._poll()
            if self._handled_count > best:
                best, progress_s = self._handled_count, time.monotonic()
            if time.monotonic() - progress_s > IDLE_MAX_S:
                return

    async def _stop(self) -> None:
        self._pods.scale(0)
        while self._pods.pods:
            await self._poll()

    # Reporting.

    def _report(self) -> Report:
        problems = list(self._pods.problems)
        problems += [
            f"after '{step.what}' the queues were not where they should be within "
            f"{SETTLED_WITHIN_S:.0f} s"
            for step in self._steps
            if step.seconds is None
        ]
        return Report(
            accounts=make_accounts(
                counts(self._order_count),
                self._journal.calls,
                killed=self._pods.killed,
                frozen=self._pods.frozen,
            ),
            steps=tuple(self._steps),
            queue_count=self._stage.queue_count,
            api_request_count=self._pods.request_count,
            seconds=self._stage.elapsed_s,
            store=self._stage.note.name,
            problems=tuple(problems),
        )
