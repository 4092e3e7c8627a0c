"""The environment variables of the options that say how hub and storage account are reached."""

from typing import Final

VARIABLES: Final = (
    "EVENTPROC_CONNECTION_STRING",
    "EVENTPROC_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_CONNECTION_STRING",
    "EVENTPROC_NAMESPACE",
    "EVENTPROC_STORAGE_ACCOUNT",
    "EVENTPROC_CUSTOM_ENDPOINT",
    "EVENTPROC_TRANSPORT",
    "EVENTPROC_CA_BUNDLE",
    "EVENTPROC_PROXY",
)
"""All of them."""
