"""A handler that gets events as Arrow columns, and names the row that it cannot use."""

import asyncio

import pyarrow as pa
import pyarrow.compute as pc

from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from eventproc import (
    EventProcessor,
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
    PartitionContext,
    PartitionHandler,
    RowError,
)
from eventproc.dead_letters import FunctionDeadLetterSink
from eventproc.sources.memory import MemoryEventSource, MemoryHub


class Total(PartitionHandler):
    """Adds up amounts; the total is stored in one write with the position."""

    columns = ("body",)

    async def process_columns(self, context: PartitionContext, columns: pa.RecordBatch) -> None:
        """Add the amounts."""
        texts = columns["body"].cast(pa.string())
        is_amount = pc.match_substring_regex(texts, "^[0-9]+$")
        amounts = texts.filter(is_amount).cast(pa.int64())
        total = int(context.state or 0) + (pc.sum(amounts).as_py() or 0)
        context.state = str(total).encode()
        print(f"{columns.num_rows} rows, total {total}")
        if bad := pc.indices_nonzero(pc.invert(is_amount)).to_pylist():
            raise RowError(*bad, error=ValueError("not an amount"))


async def main() -> None:
    """Process 10,000 amounts, and something else."""
    hub = MemoryHub(partition_count=1)
    for body in [*map(str, range(10_000)), "many"]:
        hub.publish(body.encode(), partition_id="0")
    letters = asyncio.Queue()
    policy = FailurePolicy(attempts_max=2, action=FailureAction.DEAD_LETTER)
    async with EventProcessor(
        source=MemoryEventSource(hub),
        store=MemoryCheckpointStore(MemoryAccount()),
        handler=Total,
        dead_letters=FunctionDeadLetterSink(letters.put),
        config=EventProcessorConfig(failure_policy=policy, batch_size_max=20_000),
    ):
        letter = await letters.get()
    print(f"{letter.event.body!r}: {letter.error_message}")


if __name__ == "__main__":
    asyncio.run(main())
