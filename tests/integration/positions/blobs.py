"""Blobs as other programs leave them: put into a container, and taken out of one.

A golden file has name, metadata and body of each blob; ``{namespace}`` stands for the namespace.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from azure.storage.blob import ContainerClient

NAMESPACE: Final = "acme.servicebus.windows.net"
LOWER: Final = f"{NAMESPACE}/orders/$default"
"""What the names of records begin with, as .NET, JavaScript and Python write them."""

AS_GIVEN: Final = "Acme.servicebus.windows.net/Orders/$Default"
"""Likewise, as Go and Rust do."""

GOLDEN: Final = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Blob:
    """One blob."""

    name: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    body: str = ""

    @classmethod
    def lease(cls, name: str, **values: object) -> "Blob":
        """Return a lease whose body has these values."""
        return cls(name, body=json.dumps(values))


def at(folder: str, partition_id: str, offset: str, number: str, **more: str) -> Blob:
    """Return a checkpoint as the Azure SDKs write it."""
    metadata = {"offset": offset, "sequencenumber": number, **more}
    return Blob(f"{folder}/checkpoint/{partition_id}", metadata)


def golden(program: str, namespace: str) -> list[Blob]:
    """Return the blobs that a genuine program wrote, for a hub at this namespace."""
    text = (GOLDEN / f"{program}.json").read_text().replace("{namespace}", namespace)
    return [Blob(**blob) for blob in json.loads(text)]


def as_golden(blobs: list[Blob], namespace: str) -> str:
    """Return the text of a golden file."""
    listed = [{"name": b.name, "metadata": dict(b.metadata), "body": b.body} for b in blobs]
    return json.dumps(listed, indent=2).replace(namespace, "{namespace}") + "\n"


def put(client: ContainerClient, *blobs: Blob) -> None:
    """Write blobs, one after the other."""
    for blob in blobs:
        client.upload_blob(blob.name, blob.body, metadata=dict(blob.metadata), overwrite=True)


def blobs_in(client: ContainerClient, prefix: str = "") -> list[Blob]:
    """Return the blobs of a container, by name."""
    return [
        Blob(
            blob.name,
            {key: value or "" for key, value in (blob.metadata or {}).items()},
            client.download_blob(blob.name).readall().decode(),
        )
        for blob in client.list_blobs(prefix or None, include=["metadata"])
    ]


Tool = Callable[..., tuple[int, str, str]]
"""Runs a verb of ``checkpoints``; returns exit code, standard output and standard error."""


def stored(tool: Tool) -> dict[str, tuple[str, int]]:
    """Return offset and sequence number of each partition's checkpoint."""
    listed = json.loads(tool("list", "--format", "json")[1])["checkpoints"]
    return {c["partition_id"]: (c["offset"], c["sequence_number"]) for c in listed}
