"""What ``kubectl apply -k`` would send of ``deploy/kubernetes``, rendered by kustomize itself."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema  # type: ignore[import-untyped]
import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

ROOT: Final = Path(__file__).parents[3]
FOLDER: Final = ROOT / "deploy/kubernetes"
TOOLS: Final = ROOT / ".tools/kustomize"
SCHEMAS: Final = {
    "ScaledObject": "keda.sh_scaledobjects.yaml",
    "PodMonitor": "monitoring.coreos.com_podmonitors.yaml",
    "PrometheusRule": "monitoring.coreos.com_prometheusrules.yaml",
}
"""The files of what is not Kubernetes' own, as KEDA and Prometheus' operator publish them."""

CLIENT_ID: Final = "11111111-2222-3333-4444-555555555555"

Part = dict[str, Any]


@cache
def rendered(*components: str, client_id: str = CLIENT_ID) -> tuple[Part, ...]:
    """Return the objects of ``orders`` with these of its components."""
    if not (TOOLS / "client").exists():
        pytest.skip("kustomize is not built: `make clients`")
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(shutil.copytree(FOLDER, Path(folder, "kubernetes")), "orders")
        file = copied / "kustomization.yaml"
        text = file.read_text("utf-8")
        for name in components:
            commented = f"\n  # - ../components/{name} "
            assert commented in text
            text = text.replace(commented, commented.replace("# ", "", 1))
        file.write_text(text, "utf-8")
        if client_id:
            file_of_id = copied.parent / "components/workload-identity/client-id.env"
            file_of_id.write_text(f"CLIENT_ID={client_id}\n", "utf-8")
        done = subprocess.run(
            [TOOLS / "client", copied], capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    assert not done.stderr  # Warnings of fields that kustomize will give up.
    return tuple(yaml.load_all(done.stdout, yaml.CSafeLoader))


def only(parts: tuple[Part, ...], *kinds: str, name: str = "consumer") -> Part:
    """Return the object of this name of one of these kinds."""
    (found,) = (p for p in parts if p["kind"] in kinds and p["metadata"]["name"] == name)
    return found


def pods_of(parts: tuple[Part, ...]) -> list[Part]:
    """Return the templates of all pods."""
    return [part["spec"]["template"] for part in parts if "template" in part.get("spec", {})]


def validate(part: Part) -> None:
    """Refuse an object that the API server would refuse, or of which it would ignore a field.

    Raises:
        ValidationError: By the schema of Kubernetes, or that of the object's own project.
    """
    if part["kind"] in SCHEMAS:
        jsonschema.validate(part, _schema(part["kind"], part["apiVersion"].partition("/")[2]))
    else:
        kubernetes_validate.validate(part, kubernetes_validate.latest_version(), strict=True)


@cache
def _schema(kind: str, version: str) -> Part:
    file = TOOLS / SCHEMAS[kind]
    if not file.exists():
        pytest.skip(f"{file.name} was not fetched: `make clients`")
    # Go's expressions may have flags after an anchor, Python's have them at the beginning.
    text = file.read_text("utf-8").replace("^(?i)", "(?i)^")
    definition = yaml.load(text, yaml.CSafeLoader)
    (found,) = (each for each in definition["spec"]["versions"] if each["name"] == version)
    schema: Part = found["schema"]["openAPIV3Schema"]
    for each in _objects(schema):
        each.setdefault("additionalProperties", False)
    return schema


def _objects(schema: Part) -> Iterator[Part]:
    """Yield what describes an object whose fields are listed."""
    if "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        yield schema
    for inner in (*schema.get("properties", {}).values(), schema.get("items")):
        if isinstance(inner, dict):
            yield from _objects(inner)
    if isinstance(values := schema.get("additionalProperties"), dict):
        yield from _objects(values)
