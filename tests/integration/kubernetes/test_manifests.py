"""The manifests of ``deploy/kubernetes`` ask for what the rosters need, and no more."""

from pathlib import Path

import pytest
import yaml

from eventproc import ConfigurationError
from tests.integration.kubernetes.fake_cluster import NAMESPACE
from tests.integration.kubernetes.test_rosters import read, replica_set, stateful_set

FOLDER = Path(__file__).parents[3] / "deploy/kubernetes"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("statefulset.yaml", "statefulset"), ("deployment-roster.yaml", "replicaset")],
)
def test_the_role_is_the_one_that_the_message_of_a_refusal_shows(cluster, name, kind):
    """And the container names the roster of its kind."""
    cluster.answer_scale("consumer", 403)
    cluster.answer(f"/api/v1/namespaces/{NAMESPACE}/pods/consumer-0", 403)
    is_set = kind == "statefulset"
    roster = stateful_set(cluster) if is_set else replica_set(cluster, "consumer-0")
    with pytest.raises(ConfigurationError, match="Apply this Role") as refusal:
        read(roster)
    shown = yaml.safe_load(str(refusal.value).partition(":\n")[2])
    parts = {part["kind"]: part for part in yaml.safe_load_all((FOLDER / name).read_text())}
    workload = parts["StatefulSet" if is_set else "Deployment"]
    pod = workload["spec"]["template"]["spec"]

    assert parts["Role"]["rules"] == shown["rules"]
    assert parts["RoleBinding"]["roleRef"]["name"] == parts["Role"]["metadata"]["name"]
    assert pod["serviceAccountName"] == parts["ServiceAccount"]["metadata"]["name"]
    assert f"--roster={kind}" in pod["containers"][0]["args"]
