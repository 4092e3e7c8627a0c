"""The rosters of Kubernetes, by the official client over real HTTP."""

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest

from eventproc import ConfigurationError, RosterUnavailableError
from eventproc.rosters.kubernetes import ReplicaSetRoster, StatefulSetRoster
from tests.integration.kubernetes.fake_cluster import NAMESPACE

POD: dict[str, Any] = {"pod_name": "consumer-0", "namespace": NAMESPACE}


def read(roster, times=1):
    """Open a roster, read it, and close it; return the last answer."""

    async def main():
        async with roster:
            answers = [await roster.owner_ids() for _ in range(times)]
            return sorted(answers[-1])

    return asyncio.run(main())


def stateful_set(cluster, **arguments):
    """Return the roster of the StatefulSet ``consumer``."""
    return StatefulSetRoster(kubeconfig=str(cluster.kubeconfig), **POD | arguments)


def replica_set(cluster, pod_name):
    """Return the roster of the ReplicaSet that a pod belongs to."""
    return ReplicaSetRoster(
        kubeconfig=str(cluster.kubeconfig), pod_name=pod_name, namespace=NAMESPACE
    )


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_stateful_set_names_as_many_pods_as_it_has_replicas(cluster, count):
    """Whether they run or not."""
    cluster.scale("consumer", count)

    assert read(stateful_set(cluster)) == [f"consumer-{n}" for n in range(count)]


def test_the_first_ordinal_may_be_another_than_zero(cluster):
    """As in the StatefulSet's ``spec.ordinals.start``; its name need not be that of the pod."""
    cluster.scale("orders", 2)
    roster = stateful_set(cluster, name="orders", first_ordinal=5)

    assert read(roster) == ["orders-5", "orders-6"]


def test_each_read_of_a_stateful_set_is_one_request(cluster):
    """For its scale alone, with the pod's credential."""
    cluster.scale("consumer", 2)
    read(stateful_set(cluster), times=3)

    assert cluster.requests == ["/apis/apps/v1/namespaces/shop/statefulsets/consumer/scale"] * 3
    assert cluster.credentials == {"Bearer secret"}


def test_a_replica_set_names_its_own_pods(cluster):
    """Not those of another one, nor pods that are deleted or have ended."""
    cluster.add_pod("c-a", "first", phase="Running")
    cluster.add_pod("c-b", "first", phase="Pending")
    cluster.add_pod("c-c", "first", phase="Running", is_deleted=True)
    cluster.add_pod("c-d", "first", phase="Failed")
    cluster.add_pod("c-e", "first", phase="Succeeded")
    cluster.add_pod("c-f", "second", phase="Running")
    cluster.add_pod("alone", None, phase="Running")

    assert read(replica_set(cluster, "c-a"), times=2) == ["c-a", "c-b"]
    assert cluster.requests == [
        "/api/v1/namespaces/shop/pods/c-a",
        *["/api/v1/namespaces/shop/pods?labelSelector=pod-template-hash%3Dfirst"] * 2,
    ]
    assert read(replica_set(cluster, "c-f")) == ["c-f"]


def test_a_pod_without_a_replica_set_is_refused(cluster):
    """The message names the other roster."""
    cluster.add_pod("consumer-0", None)

    with pytest.raises(ConfigurationError, match="use ReplicaSetRoster in the pods of a Deploymen"):
        read(replica_set(cluster, "consumer-0"))


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (401, ConfigurationError, "does not accept the credential"),
        (404, ConfigurationError, "namespace 'shop' does not have the scale of the StatefulSet"),
        (429, RosterUnavailableError, "answered 429"),
        (500, RosterUnavailableError, "answered 500"),
        (503, RosterUnavailableError, "answered 503"),
    ],
)
def test_a_status_is_an_error_of_eventproc(cluster, status, error, message):
    """Those that may pass are tried again at the next interval, and not before."""
    cluster.answer_scale("consumer", status)

    with pytest.raises(error, match=message):
        read(stateful_set(cluster))
    assert len(cluster.requests) == 1


@pytest.mark.parametrize(
    ("kind", "resources", "verbs"),
    [
        (stateful_set, '["statefulsets/scale"]', '["get"]'),
        (replica_set, '["pods"]', '["get", "list"]'),
    ],
)
def test_a_missing_right_is_shown_as_the_role_that_gives_it(cluster, kind, resources, verbs):
    """It can be applied as it is."""
    cluster.answer_scale("consumer", 403)
    cluster.answer("/api/v1/namespaces/shop/pods/consumer-0", 403)
    roster = kind(cluster) if kind is stateful_set else kind(cluster, "consumer-0")

    with pytest.raises(ConfigurationError) as refusal:
        read(roster)
    role = str(refusal.value).partition(":\n")[2]

    assert role.startswith("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n")
    assert f"resources: {resources}\n    verbs: {verbs}" in role
    assert "namespace: shop" in role


def test_an_api_that_is_away_is_unavailable(cluster):
    """One connection is tried, not several; when it is back, it is read again."""
    cluster.scale("consumer", 1)
    cluster.go_away()
    roster = stateful_set(cluster)
    with pytest.raises(RosterUnavailableError, match="no answer of the Kubernetes API"):
        read(roster)
    cluster.come_back()

    assert read(roster) == ["consumer-0"]


def test_an_api_that_does_not_answer_is_unavailable_after_the_timeout(cluster):
    """And the event loop goes on meanwhile."""
    cluster.answer_scale("consumer", lambda: asyncio.sleep(20))
    began_s = time.monotonic()
    with pytest.raises(RosterUnavailableError, match="no answer"):
        read(stateful_set(cluster, timeout=timedelta(seconds=0.3)))

    assert time.monotonic() - began_s < 15


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"kind": "Status"}', b"[]"])
def test_an_answer_that_is_something_else_is_unavailable(cluster, body):
    """A proxy may answer in place of the API."""
    cluster.answer_scale("consumer", body)

    with pytest.raises(RosterUnavailableError):
        read(stateful_set(cluster))


def test_outside_of_a_cluster_a_kubeconfig_is_needed(monkeypatch):
    """The message says so."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(
        ConfigurationError, match=r"this process is in no pod.*[^.]\. Run in a pod.*kubeconfig=PATH"
    ):
        read(StatefulSetRoster(**POD))


@pytest.mark.parametrize("content", [None, "", "apiVersion: v1\nkind: Config\n", "{"])
def test_a_kubeconfig_that_cannot_be_used_is_refused(tmp_path, content):
    """With its path in the message."""
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationError, match=str(path)):
        read(StatefulSetRoster(kubeconfig=str(path), **POD))


def test_the_pod_is_known_by_the_environment(monkeypatch):
    """By POD_NAME, or else by the host name."""
    monkeypatch.setenv("POD_NAME", "consumer-7")
    assert StatefulSetRoster().own_id == "consumer-7"
    monkeypatch.delenv("POD_NAME")
    monkeypatch.setattr("socket.gethostname", lambda: "consumer-8")
    assert ReplicaSetRoster().own_id == "consumer-8"


def test_a_host_that_is_no_pod_of_a_stateful_set_is_refused():
    """Before anything is sent."""
    with pytest.raises(ConfigurationError, match="'laptop': this is no name of a StatefulSet's po"):
        StatefulSetRoster(pod_name="laptop")


def test_an_interval_below_a_second_is_refused():
    """The API server has other clients, too."""
    with pytest.raises(ConfigurationError, match="interval"):
        StatefulSetRoster(interval=timedelta(seconds=0.5), **POD)
