"""A group under another spelling of its namespace is logged each time it appears."""

from datetime import UTC, datetime

from checkpointstores.blob._container import BlobItem, Listing
from checkpointstores.blob._spelling import CHECK_EVERY_S, SpellingWatch
from eventproc._base.logs import get_logger
from eventproc.models import ConsumerGroup

GROUP = ConsumerGroup(fully_qualified_namespace="localhost:5672", eventhub_name="Hub")
THEIRS = BlobItem(
    name="localhost/hub/$default/ownership/0",
    etag="1",
    last_modified=datetime(2026, 1, 1, tzinfo=UTC),
    metadata={"ownerid": "js"},
)


async def test_another_spelling_is_logged_again_if_it_disappeared_meanwhile(caplog):
    """Once while it exists. Its blobs were deleted, so it was created anew."""
    found: tuple[BlobItem, ...] = ()
    now_s = 0.0

    async def list_below(prefix: str) -> Listing:
        items = tuple(item for item in found if item.name.startswith(prefix))
        return Listing(items=items, as_of=datetime(2026, 1, 1, tzinfo=UTC))

    watch = SpellingWatch(list_below, get_logger("eventproc.test"), clock=lambda: now_s)
    counts = []
    for items in ((THEIRS,), (THEIRS,), (), (THEIRS,)):
        found = items
        await watch.check(GROUP, "localhost:5672/hub/$default")
        counts.append(len(caplog.records))
        now_s += CHECK_EVERY_S

    assert counts == [1, 1, 1, 2]
    assert {vars(record)["event"] for record in caplog.records} == {"group_spelled_otherwise"}
