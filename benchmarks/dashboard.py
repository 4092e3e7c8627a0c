"""How long the page of a group takes to show a reading of 1,000 partitions and 100 members.

Real readings of a real (memory) store, the real server, and a real Chromium: the time of a reading
and of its message in the command, and the time from the arrival of a message until the page has
drawn it; ``both`` adds them up, reading by reading. Milliseconds of wall time.

    python benchmarks/dashboard.py [--partitions N --members N]
"""

import asyncio
import statistics
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from playwright.async_api import async_playwright

from benchmarks._rows import Row, options, print_rows
from checkpointstores.memory import MemoryCheckpointStore
from eventproc.cli.dashboard.reader import GroupReader
from eventproc.cli.dashboard.site import Site
from eventproc.cli.dashboard.watcher import Watcher
from eventproc.cli.group.connection import Connection
from eventproc.core.watching.finding import WatchRules
from eventproc.endpoints.address import ListenAddress
from eventproc.endpoints.requests import serve_requests
from eventproc.models import CheckpointUpdate, ConsumerGroup, Member, OwnershipClaim

GROUP = ConsumerGroup(fully_qualified_namespace="hub.example", eventhub_name="orders")
READINGS = 20
EXPIRATION = timedelta(minutes=10)
CHROMIUM = Path(__file__).parents[1] / ".tools/chromium/chromium"
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")
ABOUT = {
    "title": "orders", "subtitle": "$Default", "namespace": "", "noun": "partition",
    "asks_hub": False, "every": 0.5, "expiration": 600, "stuck_after": 60,
}  # fmt: skip


async def fill(store: MemoryCheckpointStore, partitions: int, members: int) -> None:
    """Write the records of a group at work."""
    for number in range(members):
        member = Member(owner_id=f"processor-{number:03d}", incarnation="1")
        await store.announce_member(GROUP, member)
    for number in range(partitions):
        owner_id = f"processor-{number % members:03d}"
        claim = OwnershipClaim(
            partition_id=str(number), owner_id=owner_id, expected_etag=None, epoch=1
        )
        await store.claim_ownership(GROUP, [claim])
        await store.update_checkpoint(
            GROUP,
            CheckpointUpdate(
                partition_id=str(number),
                offset=str(number),
                sequence_number=number,
                replaces=None,
                writer=f"{owner_id}/1/1",
            ),
        )


async def move(store: MemoryCheckpointStore, members: int, step: int) -> None:
    """Give 50 partitions to other owners, so that each reading has something new."""
    owned = (await store.list_ownership(GROUP)).by_partition
    claims = [
        OwnershipClaim(
            partition_id=partition_id,
            owner_id=f"processor-{(int(partition_id) + step) % members:03d}",
            expected_etag=record.etag,
            epoch=record.epoch + 1,
        )
        for partition_id, record in list(owned.items())[step % 10 :: 20]
    ]
    await store.claim_ownership(GROUP, claims)


async def measure(partitions: int, members: int, readings: int) -> dict[str, list[float]]:
    """Return the times in milliseconds, of the command and of the page."""
    found: dict[str, list[float]] = {"reading": [], "page": []}
    async with MemoryCheckpointStore() as store:
        await fill(store, partitions, members)
        reader = GroupReader(
            Connection(group=GROUP, store=store, source=None),
            expiration=EXPIRATION,
            clock=time.monotonic,
        )
        rules = WatchRules(expiration_s=600, stuck_after_s=60)
        watcher = Watcher(
            reader.read,
            rules,
            every=timedelta(seconds=0.5),
            hub_failure=lambda: None,
            clock=time.monotonic,
        )
        site = Site(watcher=watcher, about=ABOUT, names=())
        async with (
            serve_requests(ListenAddress(), site.respond, "--http") as bound,
            async_playwright() as driver,
        ):
            browser = await driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
            page: Any = await browser.new_page(viewport={"width": 1360, "height": 900})
            await page.goto(f"http://{bound}/")
            for step in range(readings):
                await move(store, members, step)
                begun = time.perf_counter()
                await watcher.read_once()
                watcher.encoded(step)
                found["reading"].append(1000 * (time.perf_counter() - begun))
                await page.wait_for_function(
                    "(number) => document.documentElement.dataset.number === number",
                    arg=str(step + 1),
                )
                found["page"].append(
                    float(await page.evaluate("document.documentElement.dataset.refreshMs"))
                )
            await browser.close()
    return found


def main() -> None:
    """Print a row for each part of the way."""
    parser = options(__doc__)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--readings", type=int, default=READINGS)
    given = parser.parse_args()
    if given.quick:
        given.partitions, given.members, given.readings = 100, 10, 5
    found = asyncio.run(measure(given.partitions, given.members, given.readings))
    found["both"] = [sum(pair) for pair in zip(found["reading"], found["page"], strict=True)]
    rows: list[Row] = [
        {
            "partitions": given.partitions,
            "members": given.members,
            "part": name,
            "median_ms": statistics.median(later),
            "slowest_ms": max(later),
        }
        for name, (_, *later) in found.items()  # The first one has everything: it starts the page.
    ]
    print_rows(rows, given.format)


if __name__ == "__main__":
    main()
