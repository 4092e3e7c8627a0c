"""The components of ``deploy/kubernetes`` ask for what the rosters need, and no more."""

import pytest
import yaml

from eventproc import ConfigurationError
from tests.integration.kubernetes.fake_cluster import NAMESPACE
from tests.integration.kubernetes.manifests import only, rendered
from tests.integration.kubernetes.test_rosters import read, replica_set, stateful_set


@pytest.mark.parametrize(
    ("component", "kind"), [("statefulset", "statefulset"), ("ring", "replicaset")]
)
def test_the_role_is_the_one_that_the_message_of_a_refusal_shows(cluster, component, kind):
    """And the container names the roster of its kind."""
    cluster.answer_scale("consumer", 403)
    cluster.answer(f"/api/v1/namespaces/{NAMESPACE}/pods/consumer-0", 403)
    is_set = kind == "statefulset"
    roster = stateful_set(cluster) if is_set else replica_set(cluster, "consumer-0")
    with pytest.raises(ConfigurationError, match="Apply this Role") as refusal:
        read(roster)
    shown = yaml.safe_load(str(refusal.value).partition(":\n")[2])
    parts = rendered(component)
    pod = only(parts, "StatefulSet" if is_set else "Deployment")["spec"]["template"]["spec"]
    role, binding = (
        only(parts, "Role", name="eventproc"),
        only(parts, "RoleBinding", name="consumer-eventproc"),
    )

    assert role["rules"] == shown["rules"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert pod["serviceAccountName"] == only(parts, "ServiceAccount")["metadata"]["name"]
    assert f"--roster={kind}" in pod["containers"][0]["args"]
