"""Each tenant is polled by one process; tenants come and go while the processes run."""

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import (
    HeldResource,
    ResourceHandler,
    ResourceProcessor,
    ResourceProcessorConfig,
    Resources,
)

account = MemoryAccount()
config = ResourceProcessorConfig(load_balancing_interval=timedelta(seconds=0.5))
tenants = {"apac", "emea", "latam"}
polled: set[str] = set()


async def list_tenants() -> list[str]:
    """Return the tenants that there are now: elsewhere by a query of a database."""
    return sorted(tenants)


class Poller(ResourceHandler):
    """Polls a tenant for as long as this process has it."""

    async def hold(self, held: HeldResource) -> None:
        """Ask for news again and again; a move, or the end of the tenant, cancels this."""
        while True:
            polled.add(held.name)  # Elsewhere a request to the tenant's system.
            await asyncio.sleep(0.05)


async def show() -> None:
    """Wait until the tenants of now are polled, and no other ones."""
    while polled != tenants:
        polled.clear()
        await asyncio.sleep(0.2)
    print("polled:", ", ".join(sorted(polled)))


async def main() -> None:
    """Start two processors; then a tenant comes, and one goes."""
    listed = Resources(list_tenants, every=timedelta(seconds=0.2))
    async with AsyncExitStack() as stack:
        for _ in range(2):
            store = MemoryCheckpointStore(account)
            poller = ResourceProcessor(
                resources=listed, store=store, group="tenants", handler=Poller, config=config
            )
            await stack.enter_async_context(poller)
        await show()
        tenants.symmetric_difference_update({"anz", "emea"})
        await show()


asyncio.run(main())
