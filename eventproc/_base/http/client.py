"""Sends requests to the endpoints of another process."""

from datetime import timedelta

from eventproc._base.bounded_json import read_json
from eventproc._base.extras import needing
from eventproc._base.http.address import Answer, ListenAddress

with needing("http"):
    import aiohttp


async def fetch(address: ListenAddress, path: str, within: timedelta) -> Answer | None:
    """Return the answer to a GET; ``None`` if it is not complete after *within*."""
    connector = aiohttp.UnixConnector(path=address.path) if address.path else None
    host = "localhost" if address.path else address
    limit = aiohttp.ClientTimeout(total=within.total_seconds())
    try:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=limit) as session,
            session.get(f"http://{host}{path}") as response,
        ):
            if response.content_type == "application/json":
                return Answer(await response.json(loads=read_json), response.status)
            text = await response.text()
            return Answer(text, response.status, response.headers["Content-Type"])
    except (TimeoutError, aiohttp.ClientError, ValueError, OSError):
        return None
