"""Pods on partition queues: nothing is lost, overtaken or handled by two pods at once."""

import asyncio
import json
import signal
import time
from pathlib import Path

import pytest

from tests.integration.rabbitmq_pods.pods import Pods, disturbed, planned
from tests.integration.sources.rabbitmq_queues import Queues
from tests.servers.rabbitmq_broker import RabbitMqBroker

ORDERS = 2_400
RATE = 80
"""Messages a second: they come while the pods change."""


@pytest.mark.long
@pytest.mark.parametrize("lanes", [pytest.param(1, marks=pytest.mark.night), 3])
def test_scaling_under_load_handles_each_order_once(lanes, has_rabbitmq, tmp_path):
    """2-4-1-3 pods: the acknowledgements of a queue are there before its lease moves."""
    with RabbitMqBroker(location=tmp_path) as broker:
        pods, publisher = planned(tmp_path, broker, ORDERS, RATE, lanes=lanes)
    found = pods.find(publisher)

    assert sum(publisher.published.values()) == ORDERS
    assert len(found.by_pod) >= 3, "not scaled under load"
    assert found.violations == []
    assert found.repeated == []


@pytest.mark.long
@pytest.mark.parametrize("lanes", [pytest.param(1, marks=pytest.mark.night), 3])
def test_kills_a_freeze_and_a_broker_that_dies_keep_the_order_of_each_key(
    lanes, has_rabbitmq, tmp_path
):
    """What was not acknowledged may be handled again, and nothing is overtaken."""
    with RabbitMqBroker(location=tmp_path) as broker:
        pods, publisher = disturbed(tmp_path, broker, ORDERS, RATE, kills=3, lanes=lanes)
    found = pods.find(publisher)

    assert sum(publisher.published.values()) == ORDERS
    assert pods.events == {"kill": 3, "freeze": 1, "broker killed": 1}
    assert found.violations == []
    assert len(found.late) <= 1, "after a freeze only the step under way may be finished"


async def publish(queues: Queues, *bodies: bytes) -> None:
    """Publish messages of one key, and declare the queue for dead letters."""
    async with queues.publisher() as publisher, queues.channel() as channel:
        await channel.declare_queue(f"{queues.prefix}-letters", durable=True)
        for body in bodies:
            await publisher.publish(body, key="order-7")


async def letters_of(queues: Queues) -> list[bytes]:
    """Take all dead letters."""
    async with queues.channel() as channel:
        queue = await channel.get_queue(f"{queues.prefix}-letters")
        found = []
        while (message := await queue.get(no_ack=True, fail=False)) is not None:
            found.append(message.body)
        return found


def handles(pods: Pods, wanted: range) -> bool:
    """Run a pod until it has handled these messages, or has died; return whether it lived."""
    pods.start(0)
    name, popen = pods.running.pop(0)
    until_s = time.monotonic() + 60
    while popen.poll() is None and not numbers(pods.journals[name]) >= set(wanted):
        time.sleep(0.05)
        if time.monotonic() > until_s:
            popen.kill()
            popen.communicate()
            pytest.fail(f"{name} handled only {numbers(pods.journals[name])}")
    is_alive = popen.poll() is None
    popen.terminate()
    popen.wait(30)  # Its input stays open: the end of that kills it.
    popen.communicate()
    assert popen.returncode == (0 if is_alive else -signal.SIGKILL)
    return is_alive


@pytest.mark.long
@pytest.mark.parametrize("lanes", [1, 3])
def test_a_message_that_kills_its_process_becomes_a_dead_letter(lanes, rabbitmq, tmp_path):
    """After three deaths alone; every other message of its queue is handled."""
    queues = Queues(rabbitmq, 12)
    bodies = [b"%d" % number for number in range(200)]
    asyncio.run(publish(queues, *bodies[:120], b"poison", *bodies[121:]))
    pods = Pods(tmp_path, rabbitmq, queues.prefix, letters=f"{queues.prefix}-letters", lanes=lanes)
    deaths = 0
    while not handles(pods, range(150, 200)):
        deaths += 1
        assert deaths <= 8, "no end of deaths"
    (letter,) = asyncio.run(letters_of(queues))

    assert json.loads(letter)["attempt_count"] == 3
    assert set().union(*map(numbers, pods.journals.values())) == set(range(200)) - {120}
    assert asyncio.run(queues.left()) == 0
    assert deaths == 4


@pytest.mark.long
def test_after_a_purge_no_other_message_is_blamed(rabbitmq, tmp_path):
    """The count of the deaths is still stored; the broker says that the next message is new."""
    queues = Queues(rabbitmq, 12)
    asyncio.run(publish(queues, b"0", b"1", b"poison", b"3", b"4"))
    pods = Pods(tmp_path, rabbitmq, queues.prefix, letters=f"{queues.prefix}-letters")

    async def purge() -> None:
        async with asyncio.timeout(30), queues.channel() as channel:
            while await queues.left() < 3:  # noqa: ASYNC110 - the broker takes them back
                await asyncio.sleep(0.05)
            for number in range(queues.count):
                await (await channel.get_queue(queues.queue(number))).purge()

    for _ in range(4):
        assert not handles(pods, range(3, 5))
    asyncio.run(purge())
    asyncio.run(publish(queues, *(b"%d" % number for number in range(10, 20))))

    assert handles(pods, range(10, 20))
    assert asyncio.run(letters_of(queues)) == []


def numbers(journal: Path) -> set[int]:
    """Return the numbers that a pod handled."""
    lines = (line.split() for line in journal.read_text().splitlines())
    return {int(line[4]) for line in lines if line[0] == "handled" and len(line) == 6}
