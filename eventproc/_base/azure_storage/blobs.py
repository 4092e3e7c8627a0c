"""The blob service: for the checkpoint store and for dead letters."""

from typing import Any, Final
from urllib.parse import urlsplit

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.storage.blob.aio import ContainerClient

from eventproc._base.azure_storage.answers import Service
from eventproc._base.identity import AnyTokenCredential

BlobCredential = str | AzureNamedKeyCredential | AzureSasCredential | AnyTokenCredential
"""An account key or a SAS token as text, or a credential object of azure-core or azure-identity."""


def _account_of(connection_string: str) -> tuple[str, Any]:
    client = ContainerClient.from_connection_string(connection_string, "any")
    sas_token, key = urlsplit(client.url).query, client.credential
    return (
        f"{client.scheme}://{client.primary_hostname}" + (f"?{sas_token}" if sas_token else ""),
        None if key is None else AzureNamedKeyCredential(key.account_name, key.account_key),
    )


BLOBS: Final = Service(
    kind="blob",
    client=ContainerClient,
    account_of=_account_of,
    place="blob container",
    setting="container",
    items="blobs",
    name_pattern="(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*",
    name_rule="give 3 to 63 lower-case letters, digits and dashes, with a letter or digit on both "
    "sides of each dash",
    role="Storage Blob Data Contributor",
    races=frozenset(
        {
            "BlobAlreadyExists",
            "BlobNotFound",
            "ConditionNotMet",
            "ResourceAlreadyExists",
            "ResourceNotFound",
        }
    ),
    missing="ContainerNotFound",
    remedy="create it with `eventproc store init --store blob:{name}`, or let a processor create "
    "it when it starts (create_container=True, --create-container)",
)
