"""A Kubernetes API over real HTTP. It has no controllers: the test plays their part."""

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kmock import KubernetesEmulator, Server

NAMESPACE = "shop"

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: fake
clusters: [{name: fake, cluster: {server: "%s"}}]
users: [{name: pod, user: {token: secret}}]
contexts: [{name: fake, context: {cluster: fake, user: pod}}]
"""


class FakeCluster:
    """An API server in a thread of its own, with one namespace; it may go away and come back."""

    def __init__(self, folder: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._api = KubernetesEmulator()
        self._server: Any = None
        self._port: int | None = None
        self.replicas: dict[str, int] = {}
        self._run(self._api.__aenter__())
        self.come_back()
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(KUBECONFIG % f"http://127.0.0.1:{self._port}", "utf-8")

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=20)

    def close(self) -> None:
        """End the server."""
        self.go_away()
        self._run(self._api.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def go_away(self) -> None:
        """Refuse connections from now on."""
        if self._server is not None:
            self._run(self._server.__aexit__(None, None, None))
            self._server = None

    def come_back(self) -> None:
        """Answer at the same port as before."""
        self._server = Server(self._api, port=self._port)
        self._run(self._server.__aenter__())
        self._port = self._server.url.port

    def scale(self, name: str, replicas: int) -> None:
        """Create a StatefulSet, or change how many replicas it should have."""
        if name not in self.replicas:
            self.answer(_scale_of(name), lambda: {"spec": self._spec(name)})
        self.replicas[name] = replicas

    def _spec(self, name: str) -> Mapping[str, int]:
        replicas = self.replicas[name]
        return {"replicas": replicas} if replicas else {}  # The API leaves zeros out.

    def answer(self, path: str, answer: Any) -> None:
        """Give the same answer to each request for a path: a status, a body, or a function."""
        self._loop.call_soon_threadsafe(lambda: self._api[f"get {path}"] << answer)

    def answer_scale(self, name: str, answer: Any) -> None:
        """Give the same answer to each request for the scale of a StatefulSet."""
        self.answer(_scale_of(name), answer)

    def add_pod(self, name: str, replica_set: str | None, **status: Any) -> None:
        """Create a pod of a ReplicaSet, with labels as a Deployment gives them."""
        metadata: dict[str, Any] = {"name": name, "namespace": NAMESPACE}
        if replica_set is not None:
            metadata["labels"] = {"app": "consumer", "pod-template-hash": replica_set}
            metadata["ownerReferences"] = [
                {"kind": "ReplicaSet", "name": replica_set, "uid": f"uid-{replica_set}"}
            ]
        if status.pop("is_deleted", False):
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        pod = {"metadata": metadata, "status": status}
        done = threading.Event()

        def add() -> None:
            self._api.objects["v1/pods", NAMESPACE, name] = pod
            done.set()

        self._loop.call_soon_threadsafe(add)
        done.wait()

    @property
    def requests(self) -> list[str]:
        """Every request so far: the path, and what was asked of it."""
        return [str(request.url.path_qs) for request in self._api]

    @property
    def credentials(self) -> set[str]:
        """The credentials of all requests so far."""
        return {str(dict(request.headers).get("Authorization")) for request in self._api}


def _scale_of(name: str) -> str:
    return f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets/{name}/scale"
