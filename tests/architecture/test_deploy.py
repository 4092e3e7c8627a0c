"""What ``deploy/`` has is valid, and each command in it is one of today's."""

import configparser
import re
import shlex
import shutil
import subprocess
import tomllib
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from eventproc._command.app import app
from eventproc._command.arguments.modules import parse_placement
from eventproc._command.keda import processes_per_pod
from eventproc._core.watching.health import RECEIVER_PATIENCE_S
from eventproc._delivery.config import EventProcessorConfig
from eventproc.telemetry._instruments import INSTRUMENTS, PARTITION_GAUGES
from tests.integration.kubernetes.manifests import (
    CLIENT_ID,
    FOLDER,
    Part,
    only,
    pods_of,
    rendered,
    validate,
)

SHUTDOWN_S = EventProcessorConfig().shutdown_timeout.total_seconds()
LAST_WORDS_S = 3
"""After ``--shutdown-timeout`` the process ends within these seconds."""

KINDS = {"deployment": (), "ring": ("ring",), "statefulset": ("statefulset",)}
ADDED = ("keda", "workload-identity", "pod-monitor", "prometheus-rule", "network-policy")
CHOICES = {
    **KINDS,
    **{name: (name,) for name in ADDED},
    **{f"{name} with all": (*components, *ADDED) for name, components in KINDS.items()},
}
"""Components of ``orders``, in the order that it names."""

TOGETHER = ("placement", "deployment_id", "static_membership")
SECRETS = "/run/secrets/consumer/"


def parse(words: list[str]) -> dict[str, Any]:
    """Parse a command line with today's command, without running it; return its values."""
    program, verb, *rest = words
    assert program.endswith("eventproc")
    command = app.get_command(None, verb)
    return dict(command.make_context(verb, rest).params)


@pytest.fixture(name="parts", params=CHOICES)
def _parts(request):
    """Return what is applied with some components."""
    return rendered(*CHOICES[request.param])


@pytest.fixture(name="kind", params=KINDS)
def _kind(request):
    """Return what is applied with each kind of workload."""
    return rendered(*KINDS[request.param])


def workload_of(parts: tuple[Part, ...]) -> Part:
    """Return the Deployment or the StatefulSet of the consumers."""
    return only(parts, "Deployment", "StatefulSet")


def test_manifests_are_valid(parts):
    """By the schemas that Kubernetes, KEDA and Prometheus' operator publish: no unknown field.

    All objects are in the namespace of ``orders``.
    """
    for part in parts:
        validate(part)

    assert {part["metadata"]["namespace"] for part in parts} == {"orders"}


def test_every_component_is_tried():
    """And those that ``orders`` names are there."""
    folders = {each.name for each in (FOLDER / "components").iterdir()}
    text = (FOLDER / "orders/kustomization.yaml").read_text("utf-8")

    assert {*KINDS, *ADDED, "roster"} - {"deployment"} == folders
    assert set(re.findall(r"\.\./components/([a-z-]+)", text)) == folders - {"roster"}


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("ScaledObject", "maxReplicas", 3),
        ("ScaledObject", "maxReplicaCount", "many"),
        ("PodMonitor", "podMetricsEndpoint", []),
        ("PrometheusRule", "rules", []),
    ],
)
def test_a_wrong_field_would_be_noticed(kind, path, value):
    """So the test of the schemas can fail."""
    part = only(rendered(*ADDED), kind)
    with pytest.raises(jsonschema.ValidationError, match=path if value != "many" else "many"):
        validate({**part, "spec": {**part["spec"], path: value}})


def test_commands_of_manifests_are_todays(parts, monkeypatch):
    """Verb, options and variables, and settings that go together; no secret among them."""
    shown = only_config(parts)
    for pod in pods_of(parts):
        (container,) = pod["spec"]["containers"]
        variables = shown | {each["name"]: "x-0" for each in container.get("env", ())}
        secrets = {name: value for name, value in variables.items() if "CONNECTION" in name}
        for name, value in variables.items():
            monkeypatch.setenv(name, "x" if name in secrets else value)
        words = " ".join([*container["command"], *container["args"]])
        for name, value in variables.items():
            words = words.replace(f"$({name})", value)
        given = parse(words.split())
        settings = {name: given[name] for name in TOGETHER if given.get(name)}
        if isinstance(rule := settings.get("placement"), str):
            settings["placement"] = parse_placement("--placement", rule)
        EventProcessorConfig(**settings)

        assert (given["eventhub"], given["store"]) == ("orders", "blob:checkpoints")
        assert all(value.startswith(f"file:{SECRETS}") for value in secrets.values())
        assert secrets
        monkeypatch.undo()


def only_config(parts: tuple[Part, ...]) -> dict[str, str]:
    """Return the variables of the ConfigMap, whose name each pod has."""
    (found,) = (part for part in parts if part["kind"] == "ConfigMap")
    for pod in pods_of(parts):
        (container,) = pod["spec"]["containers"]
        assert container["envFrom"] == [{"configMapRef": {"name": found["metadata"]["name"]}}]
    return dict(found["data"])


def test_a_wrong_option_would_be_noticed():
    """So the test above can fail."""
    with pytest.raises(Exception, match="--no-such"):
        parse(["eventproc", "scale", "--no-such=1"])


def test_a_pod_has_time_to_stop_and_probes_of_its_endpoints(kind):
    """Kubernetes kills it later than it ends by itself; the port is the one that it serves."""
    workload = workload_of(kind)
    pod = workload["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("liveness", "readiness")}
    budget = only(kind, "PodDisruptionBudget")

    assert pod["terminationGracePeriodSeconds"] > SHUTDOWN_S + LAST_WORDS_S
    assert probes["liveness"] == {"path": "/live", "port": "http"}
    assert probes["readiness"] == {"path": "/ready", "port": "http"}
    assert f"--http=0.0.0.0:{ports['http']}" in container["args"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert budget["spec"]["selector"] == workload["spec"]["selector"]


def test_a_rollout_stops_at_a_version_that_cannot_serve(kind):
    """It waits until a pod would be unready, and takes none away before there is another one."""
    spec = workload_of(kind)["spec"]
    pod = spec["template"]["spec"]
    probes = {name: pod["containers"][0][f"{name}Probe"] for name in ("startup", "readiness")}
    longest_s = {name: p["periodSeconds"] * p["failureThreshold"] for name, p in probes.items()}

    assert spec["minReadySeconds"] >= SHUTDOWN_S + RECEIVER_PATIENCE_S + longest_s["readiness"]
    if workload_of(kind)["kind"] == "Deployment":
        assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
        assert spec["progressDeadlineSeconds"] > (
            longest_s["startup"] + spec["minReadySeconds"] + pod["terminationGracePeriodSeconds"]
        )


def test_each_rollout_of_a_deployment_has_an_id_of_its_own():
    """So partitions move once. Rosters have the names of pods instead."""
    for components in KINDS.values():
        (container,) = workload_of(rendered(*components))["spec"]["template"]["spec"]["containers"]
        fields = {each["name"]: each["valueFrom"]["fieldRef"] for each in container["env"]}

        assert fields == (
            {"POD_NAME": {"fieldPath": "metadata.name"}}
            if components
            else {"EVENTPROC_DEPLOYMENT_ID": {"fieldPath": "metadata.labels['pod-template-hash']"}}
        )


def test_a_pod_has_a_temporary_folder_and_its_secrets(kind):
    """Workers with ``--http`` need one for their sockets, and the root filesystem is read-only."""
    pod = workload_of(kind)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    folders = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    volumes = {each["name"]: each for each in pod["volumes"]}

    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert volumes[folders["/tmp"]]["emptyDir"] == {}
    assert volumes[folders[SECRETS.rstrip("/")]]["secret"] == {"secretName": "consumer"}


@pytest.mark.parametrize("components", KINDS.values(), ids=KINDS)
def test_with_an_identity_no_pod_has_a_secret(components):
    """Each pod has the label by which the webhook finds it, and the account the client id."""
    parts = rendered(*components, *ADDED)
    account = only(parts, "ServiceAccount")
    pods = pods_of(parts)

    assert len(pods) == 2
    for pod in pods:
        assert pod["metadata"]["labels"]["azure.workload.identity/use"] == "true"
        assert pod["spec"]["serviceAccountName"] == "consumer"
        assert not [each for each in pod["spec"].get("volumes") or () if "secret" in each]
        assert SECRETS.rstrip("/") not in {
            each["mountPath"] for each in pod["spec"]["containers"][0].get("volumeMounts") or ()
        }
    assert account["metadata"]["annotations"] == {"azure.workload.identity/client-id": CLIENT_ID}


@pytest.mark.parametrize("components", KINDS.values(), ids=KINDS)
def test_the_autoscaler_has_the_bounds_of_its_object(components):
    """And the Service that the object names has the port of the votes."""
    parts = rendered(*components, *ADDED)
    workload, service = workload_of(parts), only(parts, "Service", name="consumer-scale")
    scale = only(parts, "Deployment", name="consumer-scale")["spec"]["template"]["spec"]
    args = scale["containers"][0]["args"]
    scaled = only(parts, "ScaledObject")["spec"]
    metadata = scaled["triggers"][0]["metadata"]
    address, per_pod = metadata["scalerAddress"], processes_per_pod(metadata)
    host, port = address.partition(":")[0], int(address.rpartition(":")[2])

    assert scaled["scaleTargetRef"] == {"kind": workload["kind"], "name": "consumer"}
    assert "replicas" not in workload["spec"]
    assert f"--min={scaled['minReplicaCount'] * per_pod}" in args
    assert f"--max={scaled['maxReplicaCount'] * per_pod}" in args
    assert host == f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    assert port in {each["port"] for each in service["spec"]["ports"]}
    assert f"--grpc=0.0.0.0:{port}" in args


def test_alerts_ask_for_todays_metrics_in_the_namespace_of_the_group():
    """An alert on a metric that does not exist is never raised."""
    (group,) = only(rendered(*ADDED), "PrometheusRule")["spec"]["groups"]
    tables = [table for kind in INSTRUMENTS for table in (kind.counts, kind.gauges)]
    names = [each.name for table in (*tables, PARTITION_GAUGES) for each in table]
    known = {name.replace(".", "_") for name in names}
    asked = [
        re.findall(r'(eventproc_[a-z_]+)\{namespace="orders"\}', r["expr"]) for r in group["rules"]
    ]

    assert all(len(found) == 1 for found in asked)
    assert {re.sub("_(total|seconds)$", "", name) for (name,) in asked} <= known


def test_the_client_id_must_be_given():
    """So that nobody applies a placeholder; it comes into the annotation."""
    account = only(rendered("workload-identity"), "ServiceAccount")

    assert account["metadata"]["annotations"] == {"azure.workload.identity/client-id": CLIENT_ID}
    with pytest.raises(AssertionError, match=r"client-id\.env: no such file"):
        rendered("workload-identity", client_id="")


def test_monitor_and_policy_name_the_port_and_the_pods():
    """Those of the consumers, and the path of the metrics."""
    parts = rendered(*ADDED)
    workload = workload_of(parts)["spec"]
    ports = {each["name"] for each in workload["template"]["spec"]["containers"][0]["ports"]}
    monitor, policy = only(parts, "PodMonitor")["spec"], only(parts, "NetworkPolicy")["spec"]
    (endpoint,), (rule,) = monitor["podMetricsEndpoints"], policy["ingress"]

    assert monitor["selector"] == policy["podSelector"] == workload["selector"]
    assert endpoint["path"] == "/metrics"
    assert {endpoint["port"]} == {each["port"] for each in rule["ports"]} == ports


@pytest.fixture(name="unit")
def _unit(root):
    """Return the text of the systemd unit."""
    return (root / "deploy/systemd/eventproc@.service").read_text("utf-8")


def test_the_systemd_unit_restarts_by_exit_codes(unit):
    """Not after a wrong option; and it has time to stop. Its command is today's."""
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(unit)
    service = parser["Service"]
    words = shlex.split(
        service["ExecStart"].replace(
            "$EVENTPROC_OPTIONS", "--eventhub orders --store sqlite:x --workers 2"
        )
    )
    given = parse(words)

    assert service["Restart"] == "on-failure"
    assert service["RestartPreventExitStatus"] == "2"
    assert int(service["TimeoutStopSec"]) > SHUTDOWN_S + LAST_WORDS_S
    assert given["owner_id"] == "%H-%i"


def test_the_systemd_unit_is_valid(unit, tmp_path):
    """By ``systemd-analyze``, where that is installed; the program is replaced by one that is."""
    verifier = shutil.which("systemd-analyze")
    known = unit.replace("/opt/eventproc/bin/eventproc", shutil.which("true") or "/bin/true")
    (tmp_path / "eventproc@.service").write_text(known, "utf-8")
    if verifier is None:
        assert all(line[:1] in {"", "#", "["} or "=" in line for line in unit.splitlines())
        return
    done = subprocess.run(
        [verifier, "verify", "--man=no", str(tmp_path / "eventproc@orders.service")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "eventproc@" not in done.stderr
    assert done.returncode == 0


def test_the_image_names_what_there_is(root):
    """Folders, files and extras; it runs as a numbered user, and has no secret."""
    text = (root / "deploy/Dockerfile").read_text("utf-8")
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", text, flags=re.MULTILINE)
    extras = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    wanted = re.search(r"^ARG EXTRAS=(.+)$", text, flags=re.MULTILINE)
    user = re.search(r"^USER (\d+)$", text, flags=re.MULTILINE)

    assert copied
    assert all((root / name).exists() for names in copied for name in names.split())
    assert wanted
    assert set(wanted[1].split(",")) <= set(extras)
    assert user
    assert int(user[1]) > 0
    assert "KEY" not in text.upper().replace("KEYS", "")


def test_the_image_gets_what_it_copies_and_no_more(root):
    """``.dockerignore`` keeps back all but that, such as ``.venv`` and a file with secrets."""
    ignored = (root / ".dockerignore").read_text("utf-8").splitlines()
    text = (root / "deploy/Dockerfile").read_text("utf-8")
    copied = " ".join(re.findall(r"^COPY (?!--from)(.+) \S+$", text, flags=re.MULTILINE)).split()

    assert ignored[1] == "*"
    assert {line[1:] for line in ignored if line.startswith("!")} == set(copied)
