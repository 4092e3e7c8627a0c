"""The part of Kubernetes in the demo: starts and ends the pods of a StatefulSet."""

import time
from dataclasses import dataclass
from typing import Final

from eventproc.cli.demo.children import Child
from eventproc.cli.demo.rabbitmq.accounts import Freeze
from eventproc.cli.demo.rabbitmq.api_server import STATEFUL_SET, ApiServer
from eventproc.cli.demo.rabbitmq.stage import QueueStage
from eventproc.models import Member

RESTART_AFTER_S: Final = 2.0
"""Between the death of a pod's process and the start of the next one."""

GRACE_S: Final = 40.0
"""How long a pod may take to end after SIGTERM, before it is killed."""


@dataclass(slots=True, kw_only=True)
class Pod:
    """A pod, and its newest process."""

    name: str
    process: Child
    state: str = "starting"
    """``starting``, ``running``, ``frozen``, ``killed``, ``ending``."""

    since_s: float = 0.0
    """When it was killed, or asked to end."""

    incarnation: str = ""
    """Of the newest process of this pod that was a member of the group."""


class StatefulSet:
    """Keeps as many pods running as it has replicas; ends those with the highest numbers first."""

    def __init__(self, stage: QueueStage) -> None:
        self._stage = stage
        self._api = ApiServer()
        self._kubeconfig = stage.folder / "kubeconfig"
        self._api.write_kubeconfig(self._kubeconfig)
        self._started_count = 0
        self.pods: dict[str, Pod] = {}
        self.killed: dict[str, int] = {}
        """When a process that was killed had ended, by its name in the journals; nanoseconds."""

        self.frozen: list[Freeze] = []
        self.problems: list[str] = []

    @property
    def replicas(self) -> int:
        """How many pods there should be."""
        return self._api.replicas

    @property
    def request_count(self) -> int:
        """How many requests the API server got."""
        return self._api.request_count

    def scale(self, replicas: int) -> None:
        """Change how many pods there should be."""
        self._api.replicas = replicas

    def poll(self) -> None:
        """Do what is due: start missing pods, end surplus ones, and restart dead ones."""
        for number in range(self.replicas):
            name = f"{STATEFUL_SET}-{number}"
            if name not in self.pods:
                self.pods[name] = Pod(name=name, process=self._start(name))
        for pod in sorted(self.pods.values(), key=_number, reverse=True):
            self._poll_pod(pod, is_surplus=_number(pod) >= self.replicas)

    def _poll_pod(self, pod: Pod, *, is_surplus: bool) -> None:
        now_s = time.monotonic()
        if pod.state == "killed":
            if is_surplus:
                del self.pods[pod.name]
            elif now_s - pod.since_s >= RESTART_AFTER_S:
                pod.process, pod.state = self._start(pod.name), "starting"
        elif pod.process.exit_code is not None:
            if pod.state != "ending" or pod.process.exit_code:
                self.problems.append(f"{pod.name} ended with exit code {pod.process.exit_code}")
                pod.process.check()
            del self.pods[pod.name]
        elif pod.state == "ending" and now_s - pod.since_s > GRACE_S:
            self.problems.append(f"{pod.name} did not end within {GRACE_S:.0f} s")
            pod.process.kill()
            del self.pods[pod.name]
        elif is_surplus and pod.state in {"starting", "running"}:
            pod.process.terminate()
            pod.state, pod.since_s = "ending", now_s

    def seen(self, member: Member) -> None:
        """Note that a pod is a member of the group. A killed process leaves its record."""
        pod = self.pods.get(member.owner_id)
        if pod is not None and pod.state == "starting" and pod.incarnation != member.incarnation:
            pod.state, pod.incarnation = "running", member.incarnation

    def kill(self, name: str) -> None:
        """End a pod's process without notice: SIGKILL. The set restarts it."""
        pod = self.pods[name]
        pod.process.kill()
        self.killed[f"{name}.{pod.process.pid}"] = time.monotonic_ns()
        pod.state, pod.since_s = "killed", time.monotonic()

    def freeze(self, name: str) -> None:
        """Suspend a pod's process: SIGSTOP."""
        self.pods[name].process.freeze()
        self.pods[name].state = "frozen"
        now_ns = time.monotonic_ns()
        self.frozen.append((f"{name}.{self.pods[name].process.pid}", now_ns, now_ns))

    def thaw(self, name: str) -> None:
        """Resume a pod's process: SIGCONT."""
        writer, begin_ns, _ = self.frozen.pop()
        self.frozen.append((writer, begin_ns, time.monotonic_ns()))
        self.pods[name].process.thaw()
        self.pods[name].state = "running"

    def _start(self, name: str) -> Child:
        self._started_count += 1
        return self._stage.start_pod(name, self._started_count, str(self._kubeconfig))

    def close(self) -> None:
        """Stop the API server."""
        self._api.close()


def _number(pod: Pod) -> int:
    return int(pod.name.rpartition("-")[2])
