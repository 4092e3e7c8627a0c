"""Which requests a server on this machine answers, although any web page can send it some.

Rule 1: a page of another site may have its own name resolved to this machine (DNS rebinding); then
the browser takes our answers for that site's. So a server answers to its own names only. A browser
always says which name it asks for.
Rule 2: a request that a page of another origin makes changes nothing.
"""

import socket
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from eventproc._base.network import is_ip_address

LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})

_PRIVATE_ENDS: Final = (".localhost", ".local", ".internal", ".svc")
"""Ends of names that nobody can register in the public DNS; ``.svc`` is of Kubernetes."""


def hostname(url: str) -> str:
    """Return the host of a URL in lower case; empty if there is none."""
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def is_own_host(host: str | None, names: Collection[str] = ()) -> bool:
    """Whether a header ``Host`` can be meant for this server.

    An address needs no DNS, and a name without a dot is not in the public one.

    Args:
        host: The header; ``None`` if the request has none, which no browser sends.
        names: Further names of this server, as ``own_names`` returns them.
    """
    if host is None:
        return True
    name = hostname(f"//{host}").rstrip(".")
    ends = (*_PRIVATE_ENDS, *(each for each in names if each.startswith(".")))
    return bool(name) and (
        name in names
        or "." not in name
        or name.endswith(ends)
        or is_ip_address(name.partition("%")[0])
    )


def own_names(host: str, resolver: Path = Path("/etc/resolv.conf")) -> frozenset[str]:
    """Return the names of a server on this machine; one that begins with a dot is an end of names.

    Besides the machine's own name, these are the ends that its resolver appends to names: nobody
    outside of the organisation has names there. In a pod, its Services are ``NAME.NAMESPACE``, too.
    It reads a file, so it may block.

    Args:
        host: What the server listens on.
        resolver: The file that names the ends.
    """
    names = {host.lower(), socket.gethostname().lower()}
    with suppress(OSError, ValueError):
        lines = [line.lower().split() for line in resolver.read_text().splitlines()]
        ends = [end for line in lines if line[:1] in (["search"], ["domain"]) for end in line[1:]]
        names |= {f".{end.strip('.')}" for end in ends if "." in end.strip(".")}
        names |= {f".{end.partition('.svc.')[0]}" for end in ends if ".svc." in end}
    return frozenset(names)


def is_of_another_site(headers: Mapping[str, str]) -> bool:
    """Whether a page of another origin makes this request.

    Args:
        headers: The headers of the request; look-ups ignore case.
    """
    origin, host = headers.get("Origin"), headers.get("Host", "")
    if origin is not None and not _is_origin_of(origin, host):
        return True
    is_navigation = headers.get("Sec-Fetch-Mode") == "navigate"
    return headers.get("Sec-Fetch-Site", "none") not in {"same-origin", "none"} and not (
        is_navigation
    )


def may_open_socket(headers: Mapping[str, str], names: Collection[str]) -> bool:
    """Whether a WebSocket may be opened: by programs, and by pages from this machine.

    Browsers let pages of any origin open one. Programs send no origin.

    Args:
        headers: The headers of the request; look-ups ignore case.
        names: As for ``is_own_host``.
    """
    origin, host = headers.get("Origin"), headers.get("Host")
    if origin is None:
        return True
    name = hostname(origin)
    return name in LOCAL_NAMES or (name == hostname(f"//{host}") and is_own_host(host, names))


def _is_origin_of(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        return False
