"""Requests of the stores in a storage account: their limit, and which errors are logged."""

import asyncio

import pytest

from checkpointstores._requests import Requests
from eventproc._base.azure_storage.answers import ConditionFailedError, Right
from eventproc._base.logs import get_logger
from eventproc.errors import StoreRejectedError


class Service:
    """Answers with what it is given, and counts the requests under way."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.most = self._count = 0

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


def opened(concurrency_max=2):
    """Return requests that can be made."""
    requests = Requests(get_logger("test.requests"), concurrency_max=concurrency_max)
    requests.open()
    return requests


async def test_no_more_requests_than_the_limit_are_under_way():
    """Others wait."""
    service = Service()
    requests = opened()
    await asyncio.gather(*(requests.ask(Right.READ, service.request) for _ in range(9)))

    assert service.most == 2


async def test_requests_need_an_open_store():
    """Before it is opened, and after it is closed."""
    requests = opened()
    requests.close()
    with pytest.raises(RuntimeError, match="not open"):
        await requests.ask(Right.READ, Service().request)


@pytest.mark.parametrize(
    ("rights", "is_logged"),
    [([Right.WRITE], False), ([Right.READ], True), ([Right.WRITE, Right.WRITE], True)],
)
async def test_a_refusal_is_logged_unless_it_is_the_first_write(caplog, rights, is_logged):
    """The caller of the first write raises the error itself."""
    refusal = StoreRejectedError("no right")
    requests, service = opened(), Service(*[None] * (len(rights) - 1), refusal)
    for right in rights[:-1]:
        await requests.ask(right, service.request)
    with pytest.raises(StoreRejectedError):
        await requests.ask(rights[-1], service.request)

    assert ("store_refused" in caplog.text) is is_logged


async def test_a_failed_condition_ends_a_refusal(caplog):
    """It is an answer of a service that accepts the credential."""
    caplog.set_level("INFO")
    requests = opened()
    service = Service(StoreRejectedError("no right"), ConditionFailedError())
    for error in (StoreRejectedError, ConditionFailedError):
        with pytest.raises(error):
            await requests.ask(Right.READ, service.request)

    assert "store_refused_no_longer" in caplog.text
