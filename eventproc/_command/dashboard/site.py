"""The paths of the page: its files, the stream of readings, and changes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any, Final

from eventproc._base.http.address import Answer, Request
from eventproc._command.dashboard.changes import ACTIONS, PendingChanges
from eventproc._command.dashboard.guard import RefusedError, check_change, check_host, check_origin
from eventproc._command.dashboard.watcher import Watcher

TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

HEADERS: Final = {
    "Cache-Control": "no-store",
    # Nothing is loaded from elsewhere, and no other site may frame the page.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@cache
def page_files() -> Mapping[str, Answer]:
    """Return the files of the page, by their paths."""
    found = {
        f"/{file.name}": Answer(
            file.read_bytes(),
            content_type=TYPES[f".{file.name.rpartition('.')[2]}"],
            headers=HEADERS,
        )
        for file in (files(__package__) / "page").iterdir()
        if f".{file.name.rpartition('.')[2]}" in TYPES
    }
    return {**found, "/": found["/index.html"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Answers the requests of browsers."""

    watcher: Watcher
    about: Mapping[str, Any]
    """What the page says of the group, as JSON."""

    names: Collection[str]
    """Host names under which browsers reach the page, beside the address itself."""

    changes: PendingChanges | None = None
    """``None``: the page only reads."""

    async def respond(self, request: Request) -> Answer:
        """Return the answer to a request."""
        try:
            check_host(request, self.names)
            check_origin(request)
            return await self._respond(request)
        except RefusedError as refused:
            return refused.answer()

    async def _respond(self, request: Request) -> Answer:
        if request.path in {"/changes", "/changes/confirm"}:
            return await self._change(request)
        if request.method not in {"GET", "HEAD"}:
            raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET is possible here.")
        if request.path == "/events":
            return Answer(
                self.watcher.messages(), content_type="text/event-stream", headers=HEADERS
            )
        if request.path == "/about":
            actions = [] if self.changes is None else list(ACTIONS)
            return Answer({**self.about, "actions": actions}, headers=HEADERS)
        found = page_files().get(request.path)
        if found is None:
            raise RefusedError(HTTPStatus.NOT_FOUND, "There is no such page.")
        return found

    async def _change(self, request: Request) -> Answer:
        if request.method != "POST":
            raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "Only POST is possible here.")
        if self.changes is None:
            raise RefusedError(
                HTTPStatus.FORBIDDEN, "This page only reads. Start it with --allow-changes."
            )
        asked = check_change(request, self.changes.token)
        if request.path == "/changes":
            return Answer(await self.changes.plan(asked))
        return Answer(await self.changes.confirm(asked))
