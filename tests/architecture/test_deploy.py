"""What ``deploy/`` has is valid, and each command in it is one of today's."""

import configparser
import re
import shlex
import shutil
import subprocess
import tomllib
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from eventproc._command.app import app
from eventproc._command.arguments.modules import parse_placement
from eventproc._command.keda import processes_per_pod
from eventproc._delivery.config import EventProcessorConfig

SHUTDOWN_S = EventProcessorConfig().shutdown_timeout.total_seconds()
LAST_WORDS_S = 3
"""After ``--shutdown-timeout`` the process ends within these seconds."""

WORKLOADS = ("deployment", "deployment-roster", "statefulset")
MANIFESTS = (*WORKLOADS, "autoscaling")
TOGETHER = ("placement", "deployment_id", "static_membership")
KEDA_FIELDS = {
    "scaleTargetRef",
    "minReplicaCount",
    "maxReplicaCount",
    "cooldownPeriod",
    "triggers",
    "advanced",
}
"""Those used here, of ``spec`` in KEDA 2.0; later releases keep them. No package has the schema."""


def parts_of(root: Any, name: str) -> list[dict[str, Any]]:
    """Return the objects of a manifest."""
    return list(yaml.safe_load_all((root / f"deploy/kubernetes/{name}.yaml").read_text("utf-8")))


def pods_of(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the specs of all pods in a manifest."""
    return [p["spec"]["template"]["spec"] for p in parts if "template" in p.get("spec", {})]


def parse(words: list[str]) -> dict[str, Any]:
    """Parse a command line with today's command, without running it; return its values."""
    program, verb, *rest = words
    assert program.endswith("eventproc")
    command = app.get_command(None, verb)
    return dict(command.make_context(verb, rest).params)


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests_are_valid(root, name):
    """By the schemas that Kubernetes publishes, strictly: no unknown field."""
    for part in parts_of(root, name):
        if part["kind"] == "ScaledObject":
            assert set(part["spec"]) <= KEDA_FIELDS
        else:
            kubernetes_validate.validate(part, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("name", MANIFESTS)
def test_commands_of_manifests_are_todays(root, name):
    """Verb and options, and settings that go together; no option has a secret."""
    for pod in pods_of(parts_of(root, name)):
        (container,) = pod["containers"]
        words = [*container["command"], *container["args"]]
        given = parse(words)
        settings = {name: given[name] for name in TOGETHER if given.get(name)}
        if isinstance(rule := settings.get("placement"), str):
            settings["placement"] = parse_placement("--placement", rule)
        EventProcessorConfig(**settings)

        assert "connection-string" not in " ".join(words)


def test_a_wrong_option_would_be_noticed():
    """So the test above can fail."""
    with pytest.raises(Exception, match="--no-such"):
        parse(["eventproc", "scale", "--no-such=1"])


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_pod_has_time_to_stop_and_probes_of_its_endpoints(root, name):
    """Kubernetes kills it later than it ends by itself; the port is the one that it serves."""
    parts = parts_of(root, name)
    (pod,) = pods_of(parts)
    (container,) = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    probes = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("liveness", "readiness")}
    budget = next(part for part in parts if part["kind"] == "PodDisruptionBudget")
    workload = next(part for part in parts if part["kind"] in {"Deployment", "StatefulSet"})

    assert pod["terminationGracePeriodSeconds"] > SHUTDOWN_S + LAST_WORDS_S
    assert probes["liveness"] == {"path": "/live", "port": "http"}
    assert probes["readiness"] == {"path": "/ready", "port": "http"}
    assert f"--http=0.0.0.0:{ports['http']}" in container["args"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert budget["spec"]["selector"] == workload["spec"]["selector"]


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_pod_has_a_temporary_folder(root, name):
    """Workers with ``--http`` need one for their sockets, and the root filesystem is read-only."""
    (pod,) = pods_of(parts_of(root, name))
    (container,) = pod["containers"]
    folders = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    volumes = {each["name"]: each for each in pod["volumes"]}

    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert volumes[folders["/tmp"]]["emptyDir"] == {}


def test_the_autoscaler_has_the_bounds_of_its_object(root):
    """And the Service that the object names has the port of the votes."""
    parts = {part["kind"]: part for part in parts_of(root, "autoscaling")}
    (pod,) = pods_of(list(parts.values()))
    args = pod["containers"][0]["args"]
    scaled, service = parts["ScaledObject"]["spec"], parts["Service"]
    metadata = scaled["triggers"][0]["metadata"]
    address, per_pod = metadata["scalerAddress"], processes_per_pod(metadata)
    named, port = address.partition(".")[0], int(address.rpartition(":")[2])

    assert f"--min={scaled['minReplicaCount'] * per_pod}" in args
    assert f"--max={scaled['maxReplicaCount'] * per_pod}" in args
    assert named == service["metadata"]["name"]
    assert port in {each["port"] for each in service["spec"]["ports"]}
    assert f"--grpc=0.0.0.0:{port}" in args


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
