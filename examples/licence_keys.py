"""Ten licence keys on four processors: each key has one holder, and the shares are 3, 3, 2, 2."""

import asyncio
from collections import Counter
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

KEYS = [f"key-{number}" for number in range(10)]
in_use: dict[str, str] = {}


class Key(ResourceHandler):
    """Uses a key for as long as it is held."""

    async def hold(self, held: HeldResource) -> None:
        """Note who uses the key; a licence server would get ``held.epoch``."""
        assert held.name not in in_use, "a key has one holder at a time"
        in_use[held.name] = held.owner_id
        try:
            await asyncio.Event().wait()
        finally:
            del in_use[held.name]


async def main() -> None:
    """Start four processors, one after the other, and show their shares."""
    account = MemoryAccount()
    config = ResourceProcessorConfig(
        load_balancing_interval=timedelta(seconds=0.2),
        rebalance_interval=timedelta(seconds=0.05),
        ownership_expiration=timedelta(seconds=10),
    )
    async with AsyncExitStack() as stack:
        for _ in range(4):
            processor = ResourceProcessor(
                resources=Resources(KEYS),
                store=MemoryCheckpointStore(account),
                group="keys",
                handler=Key,
                config=config,
            )
            await stack.enter_async_context(processor)
        while sorted(Counter(in_use.values()).values()) != [2, 2, 3, 3]:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        shares = sorted(Counter(in_use.values()).values(), reverse=True)
        print(", ".join(map(str, shares)))


asyncio.run(main())
