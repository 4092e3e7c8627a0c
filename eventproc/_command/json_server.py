"""Serves the newest vote as JSON, for KEDA's metrics-api and anything else that speaks HTTP."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from eventproc._base.http.address import OK, UNAVAILABLE, Answer, ListenAddress
from eventproc._base.http.server import serve
from eventproc._group.autoscaler import Vote


def serve_json(
    address: ListenAddress, vote: Callable[[], Vote]
) -> AbstractAsyncContextManager[ListenAddress]:
    """Serve while the block runs; yield the address with its port.

    The status is 503 until store and hub have answered, because there is no number to report yet.

    Raises:
        ConfigurationError: The address cannot be listened on.
    """

    async def answer() -> Answer:
        newest = vote()
        is_known = newest.decision.replicas is not None
        return Answer(newest.as_json(), OK if is_known else UNAVAILABLE)

    return serve(address, {"/": answer}, "--http")
