"""The URL of a storage account that is given by its name, host or URL. Pure."""

import re
from typing import Final, Literal, TypeAlias

from eventproc.errors import ConfigurationError

Service: TypeAlias = Literal["blob", "table"]

_SERVICE_IN_HOST: Final = re.compile(r"\.(blob|table)\.core\.")
_ACCOUNT_NAME: Final = re.compile(r"[a-z0-9]{3,24}")


def account_url(account: str, *, option: str, service: Service = "blob") -> str:
    """Return the URL of an account's blobs or tables.

    Args:
        account: The account's name, host or URL.
        option: The option that gave the account, for the message.
        service: The service of the account. In an Azure address it replaces the name of another
            one.

    Raises:
        ConfigurationError: *account* is none of these.
    """
    place = _SERVICE_IN_HOST.sub(f".{service}.core.", account.rstrip("/"))
    if place.startswith(("https://", "http://")):
        return place
    if _ACCOUNT_NAME.fullmatch(place):
        return f"https://{place}.{service}.core.windows.net"
    if "." in place and "/" not in place:
        return f"https://{place}"
    raise ConfigurationError(
        f"{option} is {place!r}: give the account's name, for example contoso, or its URL, "
        "for example https://contoso.blob.core.windows.net"
    )
