"""Requests of the stores: their limit, their repetition, and which errors are logged."""

import asyncio
import logging

import pytest

from checkpointstores._requests import Reachability, Requests
from eventproc._base.azure_storage.answers import ConditionFailedError, Right
from eventproc._base.logs import get_logger
from eventproc.errors import StoreRejectedError


class Service:
    """Answers with what it is given, and counts the requests under way."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.most = self._count = 0

    async def open(self):
        """Connect to nothing."""

    async def close(self):
        """Disconnect from nothing."""

    async def request(self):
        """Return the next answer, or raise it."""
        self._count += 1
        self.most = max(self.most, self._count)
        await asyncio.sleep(0)
        self._count -= 1
        answer = self._answers.pop(0) if self._answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer


async def opened(service, concurrency_max=2):
    """Return requests that can be made."""
    requests = Requests(service, get_logger("test.requests"), concurrency_max=concurrency_max)
    await requests.open()
    return requests


async def test_no_more_requests_than_the_limit_are_under_way():
    """Others wait."""
    service = Service()
    requests = await opened(service)
    await asyncio.gather(*(requests.ask(Right.READ, service.request) for _ in range(9)))

    assert service.most == 2


async def test_requests_need_an_open_store():
    """Before it is opened, and after it is closed."""
    service = Service()
    requests = await opened(service)
    await requests.close()
    with pytest.raises(RuntimeError, match="not open"):
        await requests.ask(Right.READ, service.request)


@pytest.mark.parametrize(
    ("rights", "is_logged"),
    [([Right.WRITE], False), ([Right.READ], True), ([Right.WRITE, Right.WRITE], True)],
)
async def test_a_refusal_is_logged_unless_it_is_the_first_write(caplog, rights, is_logged):
    """The caller of the first write raises the error itself."""
    refusal = StoreRejectedError("no right")
    service = Service(*[None] * (len(rights) - 1), refusal)
    requests = await opened(service)
    for right in rights[:-1]:
        await requests.ask(right, service.request)
    with pytest.raises(StoreRejectedError):
        await requests.ask(rights[-1], service.request)

    assert ("store_refused" in caplog.text) is is_logged


async def test_a_failed_condition_ends_a_refusal(caplog):
    """It is an answer of a service that accepts the credential."""
    caplog.set_level("INFO")
    service = Service(StoreRejectedError("no right"), ConditionFailedError())
    requests = await opened(service)
    for error in (StoreRejectedError, ConditionFailedError):
        with pytest.raises(error):
            await requests.ask(Right.READ, service.request)

    assert "store_refused_no_longer" in caplog.text


def test_an_outage_and_its_end_are_logged_once_each(caplog):
    """While everything works nothing is logged."""
    caplog.set_level(logging.INFO, "eventproc")
    reachability = Reachability(get_logger("eventproc.stores.test", container="c"))
    reachability.answered("read blobs")
    for _ in range(5):
        reachability.failed(RuntimeError("gone"))
    reachability.answered("read blobs")
    reachability.answered("read blobs")
    first, second = caplog.records

    assert (first.event, first.error, first.container) == ("store_requests_failed", "gone", "c")
    assert (second.event, second.failures) == ("store_requests_recovered", 5)


def test_each_reason_of_a_refusal_and_its_end_are_logged_once(caplog):
    """Successful calls that need another right do not end it."""
    caplog.set_level(logging.INFO, "eventproc")
    reachability = Reachability(get_logger("eventproc.stores.test"))
    for _ in range(3):
        reachability.refused("delete blobs", RuntimeError("no right to delete"))
        reachability.answered("read blobs")
    for right in ("read blobs", "write blobs"):
        reachability.refused(right, RuntimeError("expired"))
    reachability.answered("read blobs")
    between = [(r.event, r.error) for r in caplog.records]
    caplog.clear()
    reachability.answered("write blobs")
    reachability.answered("delete blobs")

    assert between == [("store_refused", "no right to delete"), ("store_refused", "expired")]
    assert [(r.event, r.error) for r in caplog.records] == [
        ("store_refused_no_longer", "expired"),
        ("store_refused_no_longer", "no right to delete"),
    ]


def test_a_refusal_ends_an_outage(caplog):
    """The store answers again, even if it refuses."""
    caplog.set_level(logging.INFO, "eventproc")
    reachability = Reachability(get_logger("eventproc.stores.test"))
    reachability.failed(RuntimeError("gone"))
    reachability.refused("read blobs", RuntimeError("expired"))

    assert [r.event for r in caplog.records] == [
        "store_requests_failed",
        "store_requests_recovered",
        "store_refused",
    ]
