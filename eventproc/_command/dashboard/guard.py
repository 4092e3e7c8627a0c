"""Which requests are answered: pure functions of a request.

Rule 1: the host that a browser asks for must be one that an operator named, or the address at which
the connection arrived. A page of another site that has its own name resolved to this machine asks
for that name, and gets nothing (DNS rebinding).
Rule 2: a request that a page of another origin makes is refused, whatever it asks for.
Rule 3: a change needs the token in a header. No cookie is set or read, so no browser adds it by
itself.
"""

import hmac
from collections.abc import Collection
from http import HTTPStatus
from typing import Any, Final

from eventproc._base.bounded_json import read_json
from eventproc._base.http.address import Answer, Request
from eventproc._base.http.guard import LOCAL_NAMES, hostname, is_of_another_site

LOCAL_ADDRESSES: Final = frozenset({"127.0.0.1", "::1"})
TOKEN_HEADER: Final = "X-Eventproc-Token"  # noqa: S105 - the name of a header


class RefusedError(Exception):
    """A request that is not answered as it wishes."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message

    def answer(self) -> Answer:
        """Return the answer that says so."""
        return Answer({"error": self.message}, self.status)


def check_host(request: Request, names: Collection[str]) -> None:
    """Refuse a request for a host that this is not.

    Args:
        request: The request.
        names: Host names, in lower case, under which browsers reach this page.

    Raises:
        RefusedError: It is for another host.
    """
    asked = hostname(f"//{request.headers.get('Host', '')}")
    arrived = request.local_host.lower()
    local = LOCAL_NAMES if arrived in LOCAL_ADDRESSES else frozenset({arrived})
    if not asked or asked not in {*names, *local}:
        raise RefusedError(
            HTTPStatus.FORBIDDEN,
            f"This page is not known by the name {asked!r}. Start it with "
            f"--allow-host {asked or 'NAME'} if browsers reach it by that name.",
        )


def check_origin(request: Request) -> None:
    """Refuse a request that a page of another origin makes.

    Raises:
        RefusedError: It is one.
    """
    if is_of_another_site(request.headers):
        raise RefusedError(HTTPStatus.FORBIDDEN, "Requests of other sites are refused.")


def check_change(request: Request, token: str) -> dict[str, Any]:
    """Return the body of a request that may change something.

    Args:
        request: The request.
        token: The token that it must have.

    Raises:
        RefusedError: It may not, or its body is no JSON object.
    """
    given = request.headers.get(TOKEN_HEADER, "").encode(errors="surrogateescape")
    if not hmac.compare_digest(given, token.encode()):
        raise RefusedError(
            HTTPStatus.UNAUTHORIZED,
            "This needs the token: open the page with the URL that `eventproc dashboard` printed.",
        )
    if request.headers.get("Content-Type", "").partition(";")[0].strip() != "application/json":
        raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send application/json.")
    try:
        body = read_json(request.body)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "The body is no JSON object.")
    return body
