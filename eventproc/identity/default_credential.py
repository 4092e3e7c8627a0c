"""The credential that is found in the environment; the only module that imports azure-identity."""

import logging
from typing import Any

from eventproc.extras import needing
from eventproc.identity.shared_credential import SharedCredential
from eventproc.network import HttpProxy

with needing("identity"):
    from azure.identity import DefaultAzureCredential


def default_credential(
    *, ca_bundle: str | None = None, http_proxy: HttpProxy | None = None
) -> SharedCredential:
    """Return the credential of this process, without asking for a token yet.

    The first one that is set up is used: environment variables, workload identity, managed
    identity, the Azure CLI, other developer tools. ``AZURE_CLIENT_ID`` chooses among several
    managed identities.

    Args:
        ca_bundle: A file with the certificates to trust; by default those of ``certifi``.
        http_proxy: The proxy to reach Entra ID through.
    """
    # If logging is not set up, azure-identity prints a dozen lines before our one-line error.
    logging.getLogger("azure.identity").addHandler(logging.NullHandler())
    settings: dict[str, Any] = {}
    if ca_bundle is not None:
        settings["connection_verify"] = ca_bundle
    if http_proxy is not None:
        settings["proxies"] = {"https": http_proxy.url_with_user}
    return SharedCredential(DefaultAzureCredential(**settings))
