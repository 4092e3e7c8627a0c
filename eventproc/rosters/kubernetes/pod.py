"""What the rosters of Kubernetes have in common: the pod in which this process runs."""

import os
import socket
from datetime import timedelta
from typing import Annotated, TypeAlias

from eventproc.ports import Roster
from eventproc.rosters.kubernetes.api import KubernetesApi
from eventproc.settings import PositiveSpan, Span, Within

Interval: TypeAlias = Annotated[timedelta, Within(least=timedelta(seconds=1))]

POD_NAME: str = "POD_NAME"
"""The variable with the pod's name, for pods whose host name is another one (``hostNetwork``)."""

REQUEST_TIMEOUT = timedelta(seconds=5)


class PodRoster(Roster):
    """A roster that names pods: the owner id of a processor is the name of its pod."""

    def __init__(
        self,
        *,
        namespace: str | None,
        pod_name: str | None,
        interval: Interval,
        patience: Span,
        timeout: PositiveSpan,
        kubeconfig: str | None,
    ) -> None:
        self._pod_name = pod_name or os.environ.get(POD_NAME) or socket.gethostname()
        self._interval = interval
        self._patience = patience
        self._api = KubernetesApi(namespace, kubeconfig, timeout)

    @property
    def own_id(self) -> str:
        """The name of the pod."""
        return self._pod_name

    @property
    def interval(self) -> timedelta:
        """As given."""
        return self._interval

    @property
    def patience(self) -> timedelta:
        """As given."""
        return self._patience

    async def open(self) -> None:
        """Find the API server; sends nothing.

        Raises:
            ConfigurationError: there is neither a cluster nor a usable file.
        """
        self._api.open()

    async def close(self) -> None:
        """Close all connections."""
        self._api.close()
