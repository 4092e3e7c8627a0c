"""Handlers that no rehearsal can repeat."""

import asyncio
import json
import socket
import time
from datetime import datetime
from threading import Thread
from uuid import uuid4

from eventproc import BlockingPartitionHandler, PartitionHandler


async def ship(order):
    """Ship an order."""


class Sleeps(PartitionHandler):
    async def process_event(self, context, event):
        time.sleep(0.001)  # noqa: ASYNC251 - what is refused


class Threads(PartitionHandler):
    async def process_event(self, context, event):
        await asyncio.to_thread(print)


class StartsAThread(PartitionHandler):
    async def process_event(self, context, event):
        Thread(target=print).start()


class Connects(PartitionHandler):
    async def process_event(self, context, event):
        socket.create_connection(("localhost", 1))


class ReadsTheClock(PartitionHandler):
    async def process_event(self, context, event):
        self.at_s = time.time()
        await ship(event.sequence_number)


class ReadsTheDate(PartitionHandler):
    async def process_event(self, context, event):
        self.at = datetime.now()  # noqa: DTZ005 - what is refused


class Blocks(BlockingPartitionHandler):
    def process_event(self, context, event):
        pass


class DrawsKeys(PartitionHandler):
    async def process_event(self, context, event):
        await ship(uuid4())


class FailsAlways(PartitionHandler):
    async def process_event(self, context, event):
        await ship(json.loads(event.body)["total"])


class NeedsMore(PartitionHandler):
    def __init__(self, payments):
        self.payments = payments

    async def process_event(self, context, event):
        await self.payments.charge(event.sequence_number)


class IgnoresEverything(PartitionHandler):
    async def process_event(self, context, event):
        if "parcel" in json.loads(event.body):
            await ship(event.sequence_number)
