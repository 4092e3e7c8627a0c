"""Rosters that are read from Kubernetes: the pods of a StatefulSet, or of one's own ReplicaSet."""

import re
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Annotated, Any, Final

from eventproc._base.extras import needing
from eventproc._base.settings import PositiveSpan, Span, Within, checked
from eventproc.errors import ConfigurationError
from eventproc.ports import Roster

with needing("kubernetes"):
    from eventproc.rosters._kubernetes_api import REQUEST_TIMEOUT, Interval, KubernetesApi, own_pod

__all__ = ["ReplicaSetRoster", "StatefulSetRoster"]

_TEMPLATE_LABEL: Final = "pod-template-hash"
"""A Deployment gives this label to the pods of each of its ReplicaSets."""

_OVER: Final = frozenset({"Succeeded", "Failed"})
"""The phases of pods that will not run again."""


class _PodRoster(Roster):
    """Base of rosters that are read from the cluster in which this process runs."""

    @checked
    def __init__(
        self,
        *,
        namespace: str | None = None,
        pod_name: str | None = None,
        interval: Interval = timedelta(seconds=10),
        patience: Span = timedelta(seconds=30),
        timeout: PositiveSpan = REQUEST_TIMEOUT,
        kubeconfig: str | None = None,
    ) -> None:
        self.own_id: str = pod_name or own_pod()
        self.interval = interval
        self.patience = patience
        self._api = KubernetesApi(namespace, kubeconfig, timeout)

    async def open(self) -> None:
        """Find the API server; sends nothing.

        Raises:
            ConfigurationError: there is neither a cluster nor a usable file.
        """
        self._api.open()

    async def close(self) -> None:
        """Close all connections."""
        self._api.close()


class ReplicaSetRoster(_PodRoster):
    """Names the pods of the ReplicaSet to which this pod belongs, whether they run yet or not.

    The first read is two requests, each further one is one. Pods that are being deleted are left
    out. During a rolling deployment each ReplicaSet has a roster of its own.

    Args:
        namespace: of the pods; by default the pod's own.
        pod_name: of this pod; by default ``$POD_NAME``, or else the host name.
        interval: the least time between two requests; a second or more.
        patience: for how long the share of a pod that has not come yet is left to it.
        timeout: the longest time for a request.
        kubeconfig: a file of ``kubectl`` that says where the API server is, for processes outside
            of the cluster.

    Raises:
        ConfigurationError: an argument is not valid.
    """

    _owner_uid: str | None = None
    """Of this pod's ReplicaSet, once that is known."""

    _labels: Mapping[str, str] = MappingProxyType({})
    """What all its pods have."""

    async def owner_ids(self) -> frozenset[str]:
        """Read the pods."""
        if self._owner_uid is None:
            await self._find_own_set()
        pods = await self._api.pods(self._labels)
        return frozenset(
            str(pod["metadata"]["name"])
            for pod in pods
            if _owner_uid(pod["metadata"]) == self._owner_uid
            and "deletionTimestamp" not in pod["metadata"]
            and pod.get("status", {}).get("phase") not in _OVER
        )

    async def _find_own_set(self) -> None:
        """Read this pod, to learn which ReplicaSet it belongs to."""
        metadata = await self._api.pod(self.own_id)
        self._owner_uid = _owner_uid(metadata)
        if self._owner_uid is None:
            raise ConfigurationError(
                f"the pod {self.own_id!r} belongs to no ReplicaSet: use ReplicaSetRoster in the "
                "pods of a Deployment, and StatefulSetRoster in those of a StatefulSet"
            )
        labels = metadata.get("labels", {})
        self._labels = (
            {_TEMPLATE_LABEL: labels[_TEMPLATE_LABEL]} if _TEMPLATE_LABEL in labels else {}
        )


def _owner_uid(metadata: Mapping[str, Any]) -> str | None:
    """Return the uid of the ReplicaSet that a pod belongs to."""
    owners = metadata.get("ownerReferences", ())
    return next((str(o["uid"]) for o in owners if o.get("kind") == "ReplicaSet"), None)


_POD_NAME: Final = re.compile(r"(?P<name>.+)-[0-9]+$")


class StatefulSetRoster(_PodRoster):
    """Names the pods ``NAME-0`` to ``NAME-(replicas - 1)`` of a StatefulSet.

    Each read is one request, for the set's *scale*. Meant for the placement ``Ordinal``, which then
    knows how many numbers there are.

    Args:
        name: the StatefulSet; by default the one that the pod's name tells.
        namespace: its namespace; by default the pod's own.
        pod_name: of this pod; by default ``$POD_NAME``, or else the host name.
        first_ordinal: the StatefulSet's ``spec.ordinals.start``.
        interval: the least time between two requests; a second or more.
        patience: for how long the share of a pod that has not come yet is left to it.
        timeout: the longest time for a request.
        kubeconfig: a file of ``kubectl`` that says where the API server is, for processes outside
            of the cluster.

    Raises:
        ConfigurationError: an argument is not valid.
    """

    @checked
    def __init__(
        self,
        name: str | None = None,
        *,
        namespace: str | None = None,
        pod_name: str | None = None,
        first_ordinal: Annotated[int, Within(least=0)] = 0,
        interval: Interval = timedelta(seconds=10),
        patience: Span = timedelta(seconds=30),
        timeout: PositiveSpan = REQUEST_TIMEOUT,
        kubeconfig: str | None = None,
    ) -> None:
        super().__init__(
            namespace=namespace,
            pod_name=pod_name,
            interval=interval,
            patience=patience,
            timeout=timeout,
            kubeconfig=kubeconfig,
        )
        found = _POD_NAME.match(self.own_id)
        if found is None:
            raise ConfigurationError(
                "this is no name of a StatefulSet's pod, such as 'consumer-0': set the environment "
                "variable POD_NAME from the field metadata.name",
                setting="pod_name",
                value=repr(self.own_id),
            )
        self._name = name or found["name"]
        self._first_ordinal = first_ordinal

    async def owner_ids(self) -> frozenset[str]:
        """Read the number of replicas."""
        first = self._first_ordinal
        count = await self._api.replicas(self._name)
        return frozenset(f"{self._name}-{n}" for n in range(first, first + count))
