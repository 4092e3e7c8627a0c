"""Certificates, proxy and identity of every connection to Azure."""

from dataclasses import dataclass
from functools import cache
from typing import Final

from eventproc.identity.shared_credential import SharedCredential
from eventproc.network import HttpProxy


@dataclass(frozen=True, kw_only=True)
class Network:
    """Certificates and proxy of every connection to Azure."""

    ca_bundle: str | None = None
    proxy: HttpProxy | None = None

    def credential(self) -> SharedCredential:
        """Return the identity of this process, the same one for hub and storage account.

        Raises:
            MissingExtraError: azure-identity is not installed.
        """
        return _credential(self)


DIRECT: Final = Network()
"""The default certificates, and the proxy of the environment variables, if any."""


@cache
def _credential(network: Network) -> SharedCredential:
    from eventproc.identity.default_credential import (  # noqa: PLC0415 - it is an extra
        default_credential,
    )

    return default_credential(ca_bundle=network.ca_bundle, http_proxy=network.proxy)
