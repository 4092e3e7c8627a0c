"""The demo's publisher, a process of its own: sends keyed orders, each with a confirm.

It sends them at a steady rate. After a line on standard input it sends the rest as fast as
possible; at the end of standard input the process ends. It writes the number of orders that the
broker confirmed to a file.
"""

import asyncio
import os
import sys
import time
from pathlib import Path

from eventproc.cli.demo.publisher import write_progress
from eventproc.cli.demo.rabbitmq.orders import body_of, orders
from eventproc.cli.demo.rabbitmq.stage import BROKER_VARIABLE, PREFIX
from eventproc.cli.terminal.end_of_input import watch_input
from eventproc.sources.rabbitmq.queues import QueuePublisher


async def publish(count: int, queue_count: int, rate: float, progress: Path) -> None:
    """Publish the orders, round by round."""
    loop, is_hurried = asyncio.get_running_loop(), asyncio.Event()

    def hurry() -> None:
        loop.call_soon_threadsafe(is_hurried.set)

    watch_input(at_end=lambda: os._exit(0), at_data=hurry)
    publisher = QueuePublisher(os.environ[BROKER_VARIABLE], prefix=PREFIX, count=queue_count)
    async with publisher:
        published, begun_s = 0, time.monotonic()
        for round_of in orders(count):
            await asyncio.gather(
                *(publisher.publish(body_of(order), key=order[0]) for order in round_of)
            )
            published += len(round_of)
            write_progress(progress, published)
            due_s = begun_s + published / rate
            try:
                async with asyncio.timeout(max(0.0, due_s - time.monotonic())):
                    await is_hurried.wait()
            except TimeoutError:
                pass


def main() -> None:
    """Publish orders. The arguments are count, queues, rate and progress file."""
    count, queue_count, rate, progress = sys.argv[1:]
    asyncio.run(publish(int(count), int(queue_count), float(rate), Path(progress)))


if __name__ == "__main__":
    main()
