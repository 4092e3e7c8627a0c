"""Serves the newest vote as JSON, for KEDA's metrics-api and anything else that speaks HTTP."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

from eventproc.autoscaling.autoscaler import Vote
from eventproc.http_server import Answer, Request, serving

NO_VOTE: Final = HTTPStatus.SERVICE_UNAVAILABLE
"""The status while there was no answer of store and hub yet: not a number, so no vote."""


@asynccontextmanager
async def serve_json(host: str, port: int, vote: Callable[[], Vote]) -> AsyncIterator[int]:
    """Serve for as long as the block lasts; yields the port.

    Raises:
        ConfigurationError: The address cannot be listened on.
    """

    async def answer(request: Request) -> Answer:
        if request.path != "/":
            return Answer(status=HTTPStatus.NOT_FOUND)
        if request.method not in {"GET", "HEAD"}:
            return Answer(status=HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"})
        newest = vote()
        return Answer(
            status=NO_VOTE if newest.decision.replicas is None else HTTPStatus.OK,
            content_type="application/json; charset=utf-8",
            body=json.dumps(newest.as_json()).encode(),
        )

    async with serving(host, port, answer) as listening:
        yield listening
