"""``StatefulSetRoster``: as many members as a StatefulSet has replicas."""

import re
from datetime import timedelta
from typing import Annotated, Final

from eventproc.errors import ConfigurationError
from eventproc.ports import Roster
from eventproc.rosters.kubernetes.api import (
    REQUEST_TIMEOUT,
    Interval,
    KubernetesApi,
    own_pod,
)
from eventproc.settings import PositiveSpan, Span, Within, checked

_POD_NAME: Final = re.compile(r"(?P<name>.+)-[0-9]+$")


class StatefulSetRoster(Roster):
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
        self.own_id: str = pod_name or own_pod()
        self.interval = interval
        self.patience = patience
        self._api = KubernetesApi(namespace, kubeconfig, timeout)
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

    async def open(self) -> None:
        """Find the API server; sends nothing.

        Raises:
            ConfigurationError: there is neither a cluster nor a usable file.
        """
        self._api.open()

    async def close(self) -> None:
        """Close all connections."""
        self._api.close()

    async def owner_ids(self) -> frozenset[str]:
        """Read the number of replicas."""
        first = self._first_ordinal
        count = await self._api.replicas(self._name)
        return frozenset(f"{self._name}-{n}" for n in range(first, first + count))
