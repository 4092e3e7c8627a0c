"""The URL of a storage account: by its name, host or URL, or in a connection string."""

import os
import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from eventproc._base.network import is_ip_address
from eventproc.errors import ConfigurationError

Service: TypeAlias = Literal["blob", "table"]

_SERVICE_IN_HOST: Final = re.compile(r"\.(blob|table)\.core\.")
_HINTS: Final[Mapping[Service, str]] = {
    "blob": "http://127.0.0.1:10000/NAME",
    "table": "http://127.0.0.1:10002/NAME. Accounts for blobs alone (premium) have no tables",
}
_ENDPOINTS: Final = {f"{service}endpoint" for service in ("blob", "file", "queue", "table")}
NO_ACCOUNT: Final = (
    "there is no such storage account (404 ResourceNotFound): check its name in the address, which "
    "for Azurite is http://HOST:PORT/NAME. If HOST has a dot, Azurite takes its first part for the "
    "name: start it with --disableProductStyleUrl, or give a HOST without a dot"
)
"""Why a service that knows no such account refuses, with the remedy."""

DEV_ACCOUNT_NAME: Final = "devstoreaccount1"
"""The account that every Azurite has; public knowledge, not a secret."""

DEV_ACCOUNT_KEY: Final = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
"""The key that every Azurite has; public knowledge, not a secret."""

AUTHORITY_VARIABLE: Final = "AZURE_AUTHORITY_HOST"
"""The environment variable by which azure-identity chooses the cloud."""

_DOMAIN_BY_MARK: Final = {
    ".servicebus.windows.net": "windows.net",
    ".usgovcloudapi.net": "usgovcloudapi.net",
    ".chinacloudapi.cn": "chinacloudapi.cn",
    "login.microsoftonline.us": "usgovcloudapi.net",
    "login.partner.microsoftonline.cn": "chinacloudapi.cn",
}
"""The end of hosts in a cloud of Azure, by what tells the cloud."""

_ACCOUNT_NAME: Final = re.compile(r"[a-z0-9]{3,24}")


def account_url(account: str, *, option: str, service: Service = "blob", hub: str = "") -> str:
    """Return the URL of an account's blobs or tables.

    Args:
        account: The account's name, host or URL.
        option: The option that gave the account, for the message.
        service: The service of the account. In an Azure address it replaces the name of another
            one.
        hub: The namespace or the connection string of the hub. An account's name alone means one in
            the cloud of the hub, or else in that of the environment variable AZURE_AUTHORITY_HOST.

    Raises:
        ConfigurationError: *account* is none of these.
    """
    place = _SERVICE_IN_HOST.sub(f".{service}.core.", account.rstrip("/"))
    if place.startswith(("https://", "http://")):
        return place
    if _ACCOUNT_NAME.fullmatch(place):
        return f"https://{place}.{service}.core.{_domain(hub)}"
    if "." in place and "/" not in place:
        return f"https://{place}"
    raise ConfigurationError(
        "give the account's name, for example contoso, or its URL, for example "
        "https://contoso.blob.core.windows.net",
        setting=option,
        value=repr(place),
    )


def _domain(hub: str) -> str:
    for hint in (hub.lower(), os.environ.get(AUTHORITY_VARIABLE, "").lower()):
        for mark, domain in _DOMAIN_BY_MARK.items():
            if mark in hint:
                return domain
    return "windows.net"


def require_endpoint(connection_string: str, service: Service) -> str:
    """Return a connection string for Azure's clients, which do not know all that one may have.

    A string with the endpoints of other services alone is refused: a client would look for this
    service at a host in Azure, which the string does not name. ``DevelopmentStorageProxyUri``, the
    address of an Azurite on another machine, is replaced by endpoints.

    Raises:
        ConfigurationError: it names endpoints, and none of *service*; or the address is not one.
    """
    parts = [part.partition("=") for part in connection_string.split(";")]
    value_by_name = {name.strip().lower(): value.strip() for name, _, value in parts}
    if "developmentstorageproxyuri" in value_by_name:
        return _of_azurite(value_by_name["developmentstorageproxyuri"])
    names = [name.strip() for name, _, _ in parts]
    others = [name for name in names if name.lower() in _ENDPOINTS]
    wanted = f"{service.capitalize()}Endpoint"
    if others and wanted.lower() not in map(str.lower, names):
        raise ConfigurationError(
            f"this connection string has {others[0]}=... and no {wanted}=...: add the address of "
            f"the account's {service} service, such as {wanted}=https://NAME.{service}.core."
            f"windows.net, or for Azurite {_HINTS[service]}"
        )
    return connection_string


def _of_azurite(address: str) -> str:
    url = urlsplit(address)
    if url.scheme not in {"http", "https"} or not url.hostname:
        raise ConfigurationError(
            f"DevelopmentStorageProxyUri={address} is not a URL: give that of Azurite's host, "
            "such as http://azurite"
        )
    place = f"{url.scheme}://{url.hostname}"
    return (
        f"AccountName={DEV_ACCOUNT_NAME};AccountKey={DEV_ACCOUNT_KEY};"
        f"BlobEndpoint={place}:10000/{DEV_ACCOUNT_NAME};"
        f"TableEndpoint={place}:10002/{DEV_ACCOUNT_NAME}"
    )


def require_account(url: str) -> None:
    """Refuse the address of a storage service that names no account, in its host or its path.

    Raises:
        ConfigurationError: The host is an IP address or has no dot, and there is no path.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not parts.path.strip("/") and ("." not in host or is_ip_address(host)):
        place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        raise ConfigurationError(
            f"the storage account's address {place} lacks the account's name: give {place}/NAME, "
            "for Azurite devstoreaccount1"
        )
