"""Count the requests that a process sends to blob storage with any Azure client."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from azure.core.pipeline.transport import AioHttpTransport


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count inside the block: ``lists``, and other requests by their HTTP method."""
    sent: Counter[str] = Counter()
    send = AioHttpTransport.send

    async def counting(self: AioHttpTransport, request: Any, **rest: Any) -> Any:  # noqa: ANN401
        sent["lists" if "comp=list" in request.url else request.method.lower()] += 1
        return await send(self, request, **rest)

    AioHttpTransport.send = counting
    try:
        yield sent
    finally:
        AioHttpTransport.send = send
