"""Handlers to rehearse: ten with a fault each, and the same ones mended."""

import asyncio
import json
from contextlib import suppress

from eventproc import PartitionHandler


async def charge(order, amount, *, idempotency_key=""):
    """Charge a customer."""


async def reserve(order, *, idempotency_key=""):
    """Reserve what was ordered."""


async def charge_all(orders, *, idempotency_key):
    """Charge several customers in one request."""


async def ship(order):
    """Ship an order."""


def connect():
    """Open a connection to the database."""


database = connect()


def order_of(event):
    """Return id, key and amount of an order."""
    order = json.loads(event.body)
    return order["id"], order["key"], order["amount"]


def name_of(context, event):
    """Return what names an event among all."""
    return f"{context.partition_id}-{event.sequence_number}"


# No idempotence.


class ChargesTwice(PartitionHandler):
    async def process_event(self, context, event):
        order, _, amount = order_of(event)
        await charge(order, amount)


class ChargesByKey(PartitionHandler):
    async def process_event(self, context, event):
        order, _, amount = order_of(event)
        await charge(order, amount, idempotency_key=name_of(context, event))


# The effect before the note that it happened.


class AddsBeforeItNotes(PartitionHandler):
    async def process_event(self, context, event):
        name, (_, key, amount) = name_of(context, event), order_of(event)
        if await database.fetchrow("select 1 from applied where name = $1", name):
            return
        await database.execute(ADD, key, amount)
        await database.execute("insert into applied values ($1)", name)


class AddsAndNotesAtOnce(PartitionHandler):
    async def process_event(self, context, event):
        name, (_, key, amount) = name_of(context, event), order_of(event)
        async with database.transaction():
            if await database.fetchrow("select 1 from applied where name = $1", name):
                return
            await database.execute(ADD, key, amount)
            await database.execute("insert into applied values ($1)", name)


SCHEMA = """
create table applied (name primary key);
create table totals (key primary key, total, last default 0);
"""
ADD = """
insert into totals (key, total) values ($1, $2)
on conflict do update set total = total + excluded.total
"""
PUT = """
insert into totals values ($1, $2, $3)
on conflict do update set total = excluded.total, last = excluded.last
where excluded.last > last
"""


# A global that partitions share.

totals = {"all": 0}


class CountsInAGlobal(PartitionHandler):
    async def process_event(self, context, event):
        totals["all"] = int(context.state or totals["all"]) + order_of(event)[2]
        context.state = str(totals["all"]).encode()


class CountsInItsState(PartitionHandler):
    async def process_event(self, context, event):
        context.state = str(int(context.state or 0) + order_of(event)[2]).encode()


# State that is not that of the batch.


class CountsWhatFailed(PartitionHandler):
    async def initialize(self, context):
        self.total = int(context.state or 0)

    async def process_event(self, context, event):
        order, _, amount = order_of(event)
        self.total += amount
        await ship(order)
        context.state = str(self.total).encode()


class CountsWhatWasDone(PartitionHandler):
    async def process_event(self, context, event):
        order, _, amount = order_of(event)
        await ship(order)
        context.state = str(int(context.state or 0) + amount).encode()


# A cancellation is swallowed.


class SwallowsCancellation(PartitionHandler):
    async def process_events(self, context, events):
        for event in events:
            with suppress(asyncio.CancelledError):
                await ship(order_of(event)[0])
            context.done(event)


class LetsCancellationThrough(PartitionHandler):
    async def process_events(self, context, events):
        for event in events:
            await ship(order_of(event)[0])
            context.done(event)


# Order by arrival.


class ShipsAtOnce(PartitionHandler):
    async def process_events(self, context, events):
        await asyncio.gather(*(ship(order_of(event)[0]) for event in events))


class ShipsInOrder(PartitionHandler):
    async def process_events(self, context, events):
        for event in events:
            await ship(order_of(event)[0])


# The handler returns before the effect.


class ReturnsEarly(PartitionHandler):
    async def process_event(self, context, event):
        self.task = asyncio.create_task(ship(order_of(event)[0]))


class ReturnsWhenDone(PartitionHandler):
    async def process_event(self, context, event):
        await asyncio.create_task(ship(order_of(event)[0]))


# A cache that outlives the lease.

cache: dict = {}


async def add(known, context, event):
    """Add an amount to the total of a key, once for each event."""
    _, key, amount = order_of(event)
    if key not in known:
        row = await database.fetchrow("select total, last from totals where key = $1", key)
        known[key] = row or (0, 0)
    total, last = known[key]
    number = event.sequence_number + 1
    if number > last:
        await database.execute(PUT, key, total + amount, number)
        known[key] = total + amount, number


class CachesForEver(PartitionHandler):
    async def process_event(self, context, event):
        await add(cache, context, event)


class CachesWhileItOwns(PartitionHandler):
    async def initialize(self, context):
        self.cache: dict = {}

    async def process_event(self, context, event):
        await add(self.cache, context, event)


# A batch that is taken for a unit.


class NamesBatches(PartitionHandler):
    async def process_events(self, context, events):
        orders = [order_of(event)[0] for event in events]
        await charge_all(orders, idempotency_key=name_of(context, events[0]))


class NamesEvents(PartitionHandler):
    async def process_events(self, context, events):
        for event in events:
            orders = [order_of(event)[0]]
            await charge_all(orders, idempotency_key=name_of(context, event))


# A retry that repeats the half that was done.


class RepeatsHalf(PartitionHandler):
    async def process_event(self, context, event):
        order, _, amount = order_of(event)
        for _ in range(3):
            try:
                await reserve(order)
                return await charge(order, amount, idempotency_key=name_of(context, event))
            except ConnectionError:
                await asyncio.sleep(1)
        raise RuntimeError("the shop does not answer")


class RepeatsByName(PartitionHandler):
    async def process_event(self, context, event):
        order, _, amount = order_of(event)
        await reserve(order, idempotency_key=name_of(context, event))
        await charge(order, amount, idempotency_key=name_of(context, event))
