"""A credential for every event loop, the one of the process, and why one gives no token."""

import asyncio
import os
import ssl
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest
import trustme

from eventproc._base.identity import (
    Network,
    NoTokenError,
    SharedCredential,
    no_token_reason,
    shared,
)
from eventproc._base.network import HttpProxy
from eventproc.errors import MissingExtraError
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


async def test_an_expired_token_is_not_returned_although_its_renewal_failed_just_before(
    credential, asked, clock
):
    """The half minute until the next attempt ends with the former token."""
    await credential.get_token(SCOPE)
    clock.now += LIFE_S - 10
    asked.error = RuntimeError("away")
    kept = await credential.get_token(SCOPE)
    asked.error = None
    clock.now += 11
    renewed = await credential.get_token(SCOPE)

    assert kept.token == "token 1"
    assert renewed.expires_on > clock.now


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


class Refusing(HTTPServer):
    """Answers every request with 404, and keeps its first line."""

    def __init__(self):
        self.lines: list[str] = []
        seen = self.lines

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                seen.append(self.requestline)
                self.send_error(404)

            do_POST = do_GET  # noqa: N815 - the names that it looks for
            do_CONNECT = do_GET  # noqa: N815

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)

    def handle_error(self, *_):
        """Clients that do not trust the certificate end the handshake."""

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=[0.01], daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


def ask(network):
    """Request a token."""
    credential = network.credential()
    asyncio.run(credential.get_token(SCOPE))


@pytest.fixture
def ca(tmp_path):
    """Return a CA, whose certificate is in a file of the test's folder."""
    made = trustme.CA()
    made.cert_pem.write_to_path(tmp_path / "ca.pem")
    return made


@pytest.fixture
def entra(ca, monkeypatch):
    """Yield the server; the environment names it and a service principal."""
    with Refusing() as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ca.issue_cert("127.0.0.1").configure_cert(context)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.delenv(name, raising=False)
        for name, value in {
            "AZURE_TOKEN_CREDENTIALS": "EnvironmentCredential",
            "AZURE_AUTHORITY_HOST": f"127.0.0.1:{server.server_port}",
            # For this name MSAL does not ask Microsoft's own host about the authority first.
            "AZURE_TENANT_ID": "adfs",
            "AZURE_CLIENT_ID": "the-client",
            "AZURE_CLIENT_SECRET": "secret",
        }.items():
            monkeypatch.setenv(name, value)
        yield server


def test_the_ca_that_is_given_is_trusted(entra, tmp_path):
    """The request arrives, so the certificate was accepted."""
    with pytest.raises(NoTokenError):
        ask(Network(ca_bundle=str(tmp_path / "ca.pem")))

    assert any("/adfs/" in line for line in entra.lines)


@pytest.mark.long
def test_the_proxy_that_is_given_is_used(entra):
    """It is asked for a tunnel to Entra ID."""
    with Refusing() as proxy:
        address = HttpProxy(host="127.0.0.1", port=proxy.server_port)
        with suppress(NoTokenError):
            ask(Network(proxy=address))

    assert f"CONNECT 127.0.0.1:{entra.server_port} HTTP/1.1" in [
        line.replace("HTTP/1.0", "HTTP/1.1") for line in proxy.lines
    ]
    assert entra.lines == []


def test_a_missing_package_names_the_extra(monkeypatch):
    """The message has the command that installs it."""
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'eventproc\[identity\]'"):
        Network(ca_bundle="its.pem").credential()


TRIED = """DefaultAzureCredential failed to retrieve a token from the included credentials.
Attempted credentials:
\tEnvironmentCredential: EnvironmentCredential authentication unavailable. Not configured.
Visit https://aka.ms/azsdk to troubleshoot this issue.
\tWorkloadIdentityCredential: {workload}
\tAzureCliCredential: Azure CLI not found on path
To mitigate this issue, see the guidelines."""
UNAVAILABLE = "WorkloadIdentityCredential authentication unavailable."


def test_if_nothing_is_set_up_the_remedy_is_named():
    """Which of a dozen credentials are missing helps nobody."""
    assert no_token_reason(ValueError(TRIED.format(workload=UNAVAILABLE))).startswith(
        "no credential was found. In Azure, give the machine or the pod a managed identity"
    )


def test_a_credential_that_is_set_up_and_failed_is_named_alone():
    """Also if its reason contains the words of one that is missing."""
    text = no_token_reason(ValueError(TRIED.format(workload="AADSTS700016: not found here")))

    assert text == (
        "no credential gave a token. WorkloadIdentityCredential failed: AADSTS700016: not found "
        "here"
    )


def test_another_error_is_kept_and_shortened():
    """It stays on one line."""
    assert no_token_reason(ValueError("a\n b")) == "the credential gave no token: a b"
    assert no_token_reason(KeyError()) == "the credential gave no token: KeyError"
    assert len(no_token_reason(ValueError("x" * 5000))) < 400


def test_a_process_has_one_credential_for_each_way_to_reach_entra_id():
    """Hub and storage account share it, so that its tokens are requested once."""
    proxy = HttpProxy(host="proxy", port=8080)

    assert Network().credential() is Network().credential()
    assert Network(proxy=proxy).credential() is Network(proxy=proxy).credential()
    assert Network(proxy=proxy).credential() is not Network().credential()
