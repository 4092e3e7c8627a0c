"""The Kubernetes API, by the official client; the only importer of ``kubernetes``.

Rule 1: one call is one request. The client would repeat a failed one several times at once; here
the next one follows at the roster's interval.
Rule 2: every exception of the client leaves this module as an error of ``eventproc.errors``.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from kubernetes.client import ApiClient, ApiException, AppsV1Api, Configuration, CoreV1Api
from kubernetes.config import load_incluster_config, load_kube_config
from urllib3.exceptions import HTTPError

from eventproc._base.bounded_json import read_json
from eventproc._base.settings import Within
from eventproc.errors import ConfigurationError, RosterUnavailableError

NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""Where a pod finds the name of its namespace."""

ROLE: Final = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: eventproc
  namespace: {namespace}
rules:
  - apiGroups: ["{group}"]
    resources: ["{resource}"]
    verbs: [{verbs}]"""

Json = Mapping[str, Any]

Interval: TypeAlias = Annotated[timedelta, Within(least=timedelta(seconds=1))]

POD_NAME: Final = "POD_NAME"
"""The variable with the pod's name, for pods whose host name is another one (``hostNetwork``)."""

REQUEST_TIMEOUT: Final = timedelta(seconds=5)


def own_pod() -> str:
    """Return the name of the pod in which this process runs, which is its owner id."""
    return os.environ.get(POD_NAME) or socket.gethostname()


class KubernetesApi:
    """Reads from the API server of the cluster in which this process runs.

    Outside of a cluster, and with *kubeconfig*, a file of ``kubectl`` says where it is. Calls may
    be made after ``open``.
    """

    def __init__(self, namespace: str | None, kubeconfig: str | None, timeout: timedelta) -> None:
        self._namespace = namespace
        self._kubeconfig = kubeconfig
        self._timeout_s = timeout.total_seconds()
        self._client: ApiClient | None = None

    @property
    def namespace(self) -> str:
        """The namespace that is read: as given, or else the pod's own, or else ``default``."""
        if self._namespace is None:
            try:
                self._namespace = NAMESPACE_FILE.read_text(encoding="utf-8").strip()
            except OSError:
                self._namespace = "default"
        return self._namespace

    def open(self) -> None:
        """Find the API server and the credential; sends nothing.

        Raises:
            ConfigurationError: there is neither a cluster nor a usable file.
        """
        configuration = Configuration()
        try:
            if self._kubeconfig is None:
                load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
            else:
                load_kube_config(self._kubeconfig, client_configuration=configuration)  # type: ignore[no-untyped-call]
        except Exception as error:  # the file may be anything
            where = "this process is in no pod" if self._kubeconfig is None else self._kubeconfig
            reason = str(error).rstrip(".")
            raise ConfigurationError(
                f"no Kubernetes API server is known ({where}): {reason}. Run in a pod whose "
                "ServiceAccount mounts a token, or make the roster with kubeconfig=PATH of a "
                "file of kubectl"
            ) from error
        configuration.retries = False
        self._client = ApiClient(configuration)

    def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            client.close()  # type: ignore[no-untyped-call]

    async def replicas(self, stateful_set: str) -> int:
        """Read how many replicas a StatefulSet should have, from its scale.

        Raises:
            ConfigurationError: there is none, or it may not be read.
            RosterUnavailableError: no answer.
        """
        spec = await self._get(
            "spec",
            AppsV1Api(self._client).read_namespaced_stateful_set_scale,
            stateful_set,
            what=f"the scale of the StatefulSet {stateful_set!r}",
            right=("apps", "statefulsets/scale", ["get"]),
        )
        return int(spec.get("replicas", 0))  # The API leaves zeros out.

    async def pod(self, name: str) -> Json:
        """Read the metadata of a pod.

        Raises:
            ConfigurationError: there is none, or it may not be read.
            RosterUnavailableError: no answer.
        """
        read = CoreV1Api(self._client).read_namespaced_pod
        right = ("", "pods", ["get", "list"])
        found = await self._get("metadata", read, name, what=f"the pod {name!r}", right=right)
        return dict(found)

    async def pods(self, labels: Mapping[str, str]) -> Sequence[Json]:
        """Read the pods that have these labels.

        Raises:
            ConfigurationError: they may not be read.
            RosterUnavailableError: no answer.
        """
        found = await self._get(
            "items",
            CoreV1Api(self._client).list_namespaced_pod,
            what="pods",
            right=("", "pods", ["get", "list"]),
            label_selector=",".join(f"{name}={value}" for name, value in labels.items()),
        )
        return list(found)

    async def _get(
        self,
        part: str,
        read: Callable[..., Any],
        *names: str,
        what: str,
        right: tuple[str, str, list[str]],
        **arguments: str,
    ) -> Any:  # noqa: ANN401 - JSON
        """Send one request, in a thread; return a part of the answer, as JSON."""

        def request() -> Any:  # noqa: ANN401 - JSON
            response = read(
                *names,
                namespace=self.namespace,
                _preload_content=False,
                _request_timeout=self._timeout_s,
                **arguments,
            )
            answer = read_json(response.data)
            if not isinstance(answer, dict) or part not in answer:
                raise ValueError(f"the answer has no {part!r}")
            return answer[part]

        try:
            async with asyncio.timeout(self._timeout_s):  # That of a request is one for each read.
                return await asyncio.to_thread(request)
        except TimeoutError as error:
            raise RosterUnavailableError(
                f"no answer of the Kubernetes API for {what} within {self._timeout_s:g} s"
            ) from error
        except ApiException as error:
            raise _error_for(error, what, right, self.namespace) from error
        except (HTTPError, OSError, ValueError) as error:
            raise RosterUnavailableError(
                f"no answer of the Kubernetes API for {what}: {error}"
            ) from error


def _error_for(
    error: ApiException, what: str, right: tuple[str, str, list[str]], namespace: str
) -> ConfigurationError | RosterUnavailableError:
    if error.status == HTTPStatus.UNAUTHORIZED:
        return ConfigurationError(
            f"the Kubernetes API does not accept the credential (status {error.status}, "
            f"{error.reason}): check that the pod mounts the token of its ServiceAccount, or what "
            "the file of kubectl says"
        )
    if error.status == HTTPStatus.FORBIDDEN:
        group, resource, verbs = right
        role = ROLE.format(
            namespace=namespace,
            group=group,
            resource=resource,
            verbs=", ".join(f'"{verb}"' for verb in verbs),
        )
        return ConfigurationError(
            f"the Kubernetes API refuses to show {what} in namespace {namespace!r} (status "
            f"{error.status}, {error.reason}). Apply this Role, and bind it to the pod's "
            f"ServiceAccount with a RoleBinding:\n{role}"
        )
    if error.status == HTTPStatus.NOT_FOUND:
        return ConfigurationError(
            f"namespace {namespace!r} does not have {what}: make the roster with the right "
            "name and namespace"
        )
    return RosterUnavailableError(
        f"the Kubernetes API answered {error.status} ({error.reason}) for {what}"
    )
