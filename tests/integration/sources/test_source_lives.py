"""Sources in a second event loop, and in a forked child."""

import asyncio
import os

import pytest

from eventproc.testing._source_contract.bench import EARLIEST, GROUP, SOON
from tests.scenarios.forks import refusals
from tests.scenarios.loops import in_two_loops


async def test_a_source_that_was_closed_can_be_opened_in_another_event_loop(bench):
    """As a processor does that is started again, with requests that wait for each other."""
    await bench.publish("0", b"first")
    source, received = bench.source(), []

    async def use():
        async with source:
            ids = await source.partition_ids()
            await asyncio.gather(
                *(source.partition_properties(each) for each in ids for _ in range(3))
            )
            receiver = await source.open_receiver(GROUP, "0", EARLIEST)
            received.append([e.body for e in await receiver.receive(events_max=1, wait_max=SOON)])

    await in_two_loops(use)

    assert received == [[b"first"], [b"first"]]


# librdkafka and the emulator have threads: a child that only asks and ends does not need them.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
async def test_an_open_source_refuses_every_call_in_a_child(bench):
    """Its connections are the parent's."""
    async with bench.source() as source:
        refused = refusals(
            {
                "open": source.open,
                "ids": source.partition_ids,
                "receiver": lambda: source.open_receiver(GROUP, "0", EARLIEST),
                "close": source.close,
            }
        )

    assert len(refused) == 4
    assert all(f"was opened in process {os.getpid()}" in text for text in refused.values())
