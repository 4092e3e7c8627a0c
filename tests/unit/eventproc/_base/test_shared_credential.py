"""A credential is asked where it can answer, and a valid token outlives a failed renewal."""

import asyncio
import os
import threading
from types import SimpleNamespace

import pytest

from eventproc._base.identity import NoTokenError, SharedCredential, shared
from tests.scenarios.forks import forked

SCOPE = "https://eventhubs.azure.net//.default"
LIFE_S = 3600


class Clock:
    """A clock that stands still until it is set."""

    now = 1000.0

    def __call__(self):
        return self.now


class Blocking:
    """A credential that is asked in a thread; its answers wait for ``may_answer``."""

    def __init__(self, clock):
        self.clock, self.asked, self.error = clock, [], None
        self.may_answer = threading.Event()
        self.may_answer.set()

    def get_token(self, *scopes, **options):
        self.asked.append((scopes, options, threading.current_thread()))
        self.may_answer.wait(30)
        if self.error is not None:
            raise self.error
        return SimpleNamespace(
            token=f"token {len(self.asked)}", expires_on=int(self.clock()) + LIFE_S
        )


class OnOneLoop:
    """An asynchronous credential that works on one event loop only, as those of azure.identity."""

    def __init__(self):
        self.loop, self.asked = None, 0

    async def get_token(self, *scopes, **options):
        here = asyncio.get_running_loop()
        self.loop = self.loop or here
        assert here is self.loop, "attached to a different loop"
        self.asked += 1
        await asyncio.sleep(0)
        return SimpleNamespace(token="token", expires_on=9_999_999_999)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def asked(clock):
    return Blocking(clock)


@pytest.fixture
def credential(asked, clock):
    return SharedCredential(asked, clock=clock)


async def test_a_token_is_kept_until_five_minutes_before_its_end(credential, asked, clock):
    """An ordinary credential is asked in a thread."""
    first = await credential.get_token(SCOPE)
    clock.now += LIFE_S - 301
    again = await credential.get_token(SCOPE)
    clock.now += 2
    renewed = await credential.get_token(SCOPE)

    assert (first.token, again.token, renewed.token) == ("token 1", "token 1", "token 2")
    assert asked.asked[0][2] is not threading.current_thread()


async def test_each_scope_has_a_token_of_its_own(credential, asked):
    """One for the hub, one for the storage account."""
    await credential.get_token(SCOPE)
    await credential.get_token("https://storage.azure.com/.default")
    await credential.get_token(SCOPE)

    assert len(asked.asked) == 2


async def test_callers_at_the_same_time_share_a_request(credential, asked):
    """As the links of all partitions at a start."""
    tokens = await asyncio.gather(*(credential.get_token(SCOPE) for _ in range(5)))

    assert {token.token for token in tokens} == {"token 1"}
    assert len(asked.asked) == 1


async def test_a_valid_token_outlives_a_failed_renewal(credential, asked, clock):
    """The next attempt follows after half a minute; an expired token is never returned."""
    await credential.get_token(SCOPE)
    clock.now += LIFE_S - 200
    asked.error = RuntimeError("away")
    kept = [(await credential.get_token(SCOPE)).token for _ in range(3)]
    count = len(asked.asked)
    clock.now += 31
    await credential.get_token(SCOPE)
    clock.now += 200
    with pytest.raises(NoTokenError, match="the credential gave no token: away"):
        await credential.get_token(SCOPE)

    assert kept == ["token 1"] * 3
    assert count == 2
    assert len(asked.asked) >= 4


async def test_a_slow_renewal_is_not_waited_for(credential, asked, clock, monkeypatch):
    """The former token is returned while it is valid, and the new one when it has come."""
    monkeypatch.setattr("eventproc._base.identity.RENEWAL_WAIT_S", 0.05)
    await credential.get_token(SCOPE)
    clock.now += LIFE_S - 200
    asked.may_answer.clear()
    slow = await credential.get_token(SCOPE)
    asked.may_answer.set()
    while (await credential.get_token(SCOPE)).token != "token 2":
        pass

    assert slow.token == "token 1"
    assert len(asked.asked) == 2


async def test_a_renewal_that_never_ends_is_followed_by_another(credential, asked, clock):
    """A call that hangs, of a broken network or of another program, must not end all access."""
    await credential.get_token(SCOPE)
    clock.now += LIFE_S
    asked.may_answer.clear()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(credential.get_token(SCOPE), 0.05)
    hanging, asked.may_answer = asked.may_answer, threading.Event()
    asked.may_answer.set()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(credential.get_token(SCOPE), 0.05)
    clock.now += 60
    renewed = await credential.get_token(SCOPE)
    hanging.set()

    assert renewed.token == "token 3"
    assert len(asked.asked) == 3


async def test_claims_ask_for_a_new_token(credential, asked):
    """The service has refused the former one."""
    await credential.get_token(SCOPE, enable_cae=True)
    renewed = await credential.get_token(SCOPE, enable_cae=True, claims="{}")

    assert renewed.token == "token 2"
    assert asked.asked[1][1] == {"enable_cae": True, "claims": "{}"}


async def test_a_cancelled_caller_leaves_the_request_to_others(credential, asked):
    """A time-out of one caller is not one of the others."""
    asked.may_answer.clear()
    first = asyncio.create_task(credential.get_token(SCOPE))
    second = asyncio.create_task(credential.get_token(SCOPE))
    await asyncio.sleep(0.01)
    first.cancel()
    asked.may_answer.set()

    assert (await second).token == "token 1"
    assert first.cancelled() or first.done()


async def test_an_asynchronous_credential_is_asked_on_its_own_loop():
    """Source and store wrap the same credential, and the store has another loop."""
    credential = OnOneLoop()
    of_source, of_store = SharedCredential(credential), SharedCredential(credential)
    await of_source.get_token(SCOPE)
    token = await asyncio.to_thread(asyncio.run, of_store.get_token(SCOPE))

    assert token.token == "token"
    assert credential.asked == 2


def test_a_credential_whose_loop_has_ended_is_asked_on_the_next():
    """Such as one that was only wrapped there."""
    credential = OnOneLoop()

    async def wrap():
        return SharedCredential(credential)

    made = asyncio.run(wrap())

    assert asyncio.run(made.get_token(SCOPE)).token == "token"


def test_a_credential_whose_loop_stands_still_is_asked_on_the_next():
    """It is not closed, but nothing runs on it any more."""
    credential = OnOneLoop()

    async def wrap():
        return SharedCredential(credential)

    former = asyncio.new_event_loop()
    made = former.run_until_complete(wrap())
    token = asyncio.run(asyncio.wait_for(made.get_token(SCOPE), 20))
    former.close()

    assert token.token == "token"


async def test_a_credential_is_asked_on_a_loop_of_the_child_after_a_fork():
    """Its loop of the parent looks as if it ran in the child, too."""
    made = SharedCredential(OnOneLoop())

    def ask(writing):
        token = asyncio.run(asyncio.wait_for(made.get_token(SCOPE), 20))
        os.write(writing, token.token.encode())

    with forked(ask) as reading:
        answer = await asyncio.to_thread(os.read, reading, 1000)

    assert answer == b"token"


def test_keys_and_shared_credentials_stay_what_they_are(credential):
    """Only token credentials are wrapped."""
    key = object()

    assert shared(key) is key
    assert shared(credential) is credential
    assert isinstance(shared(OnOneLoop()), SharedCredential)
