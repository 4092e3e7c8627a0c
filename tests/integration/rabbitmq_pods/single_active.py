"""A pod in the way of "Distributed balanced partition-queues assignment using Kubernetes
statefulSet": the single active consumer is its only exclusion, and there are no leases.

Arguments and journal as in ``worker``; instead of a store it reads the number of replicas, from a
file that stands for the StatefulSet's scale. A pod consumes its range of the queues, handles the
messages of each queue one after the other, and acknowledges each when it was handled. A queue that
is another pod's by now is cancelled, and what was delivered before is handled to its end, as the
client of the article does. No prefetch is set, as in the article.
"""

import asyncio
import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from eventproc.sources.rabbitmq._event import DELIVERY_COUNT_HEADER, KEY_HEADER

URL, PREFIX, COUNT, STORE, OWNER_ID, JOURNAL, GIVEN = sys.argv[1:]
WORK_S = json.loads(GIVEN).get("work_s", 0.0)
SCALE: Final = Path(f"{STORE}.replicas")
POLL_S: Final = 0.2

_journal = os.open(JOURNAL, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
_random = Random(OWNER_ID)


def record(what: str, *details: object) -> None:
    """Write a line."""
    os.write(_journal, " ".join(map(str, (what, *details))).encode() + b"\n")


def assigned(ordinal: int, replicas: int, count: int) -> range:
    """Return a pod's range of queues; the last pod takes the remainder, as in the article."""
    assignable = min(replicas, count)
    if ordinal >= assignable:
        return range(0)
    each, remainder = divmod(count, assignable)
    first = ordinal * each
    return range(first, first + each + (remainder if ordinal == assignable - 1 else 0))


class Reader:
    """Handles the messages of one queue, one after the other."""

    def __init__(self, channel: AbstractChannel, number: int) -> None:
        """Begin with ``begin``."""
        self._channel, self._number = channel, number
        self._waiting: asyncio.Queue[AbstractIncomingMessage | None] = asyncio.Queue()
        self._task = asyncio.create_task(self._handle_all())
        self._tag = ""

    async def begin(self) -> None:
        """Register as a consumer."""
        queue = await self._channel.get_queue(f"{PREFIX}-P{self._number}")
        self._tag = await queue.consume(self._waiting.put)

    async def end(self) -> None:
        """Cancel the consumer, and handle what was delivered before."""
        queue = await self._channel.get_queue(f"{PREFIX}-P{self._number}")
        await queue.cancel(self._tag)
        await self._waiting.put(None)
        await self._task

    async def _handle_all(self) -> None:
        while (message := await self._waiting.get()) is not None:
            record("enter", self._number, time.monotonic_ns())
            await asyncio.sleep(2 * WORK_S * _random.random())
            again = message.headers.get(DELIVERY_COUNT_HEADER, 0)
            what = message.headers[KEY_HEADER], message.body.decode(), again
            record("handled", self._number, time.monotonic_ns(), *what)
            record("leave", self._number, time.monotonic_ns())
            await message.ack()


def end_with_input() -> None:
    """End the process when its parent has ended."""
    sys.stdin.read()
    os._exit(3)


async def main() -> None:
    """Serve until SIGTERM."""
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    threading.Thread(target=end_with_input, daemon=True).start()
    ordinal = int(OWNER_ID.rpartition("-")[2])
    readers: dict[int, Reader] = {}
    async with await aio_pika.connect(URL) as connection:
        print("ready", flush=True)
        while not stopping.is_set():
            wanted = assigned(ordinal, int(SCALE.read_text()), int(COUNT))
            for number in set(wanted) - set(readers):
                readers[number] = Reader(await connection.channel(), number)
                await readers[number].begin()
            surplus = [readers.pop(number) for number in set(readers) - set(wanted)]
            await asyncio.gather(*(reader.end() for reader in surplus))
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), POLL_S)
        await asyncio.gather(*(reader.end() for reader in readers.values()))


asyncio.run(main())
