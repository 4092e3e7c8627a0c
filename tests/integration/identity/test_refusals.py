"""What the command says when identity, certificate or proxy are refused: one line, one code."""

from pathlib import Path

import pytest

from eventproc._command import main
from eventproc._command.terminal.exits import BAD_INPUT, UNREACHABLE
from eventproc.emulator import EventHubsEmulator, Right, TokenRules
from tests.servers.ports import free_port

from .connect_proxy import ConnectProxy
from .fake_storage import FakeStorage
from .test_command import hub_at

HUB, STORE = "hub", "store"


@pytest.fixture(name="refused")
def _refused(has_identity, tls, hub, account, box, tmp_path, monkeypatch, capsys):
    """Return a function that asks the hub or the store alone, and returns code and message.

    The command runs in this process.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENTPROC_CA_BUNDLE", str(tls.ca))

    def refused(part, *more, port=0, **env):
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        arguments = ("checkpoints", "list", *hub_at(hub.port), "--without-hub", "--store")
        arguments = (*arguments, f"blob:{box}", "--storage-account", account.endpoint)
        if part == HUB:
            arguments = ("checkpoints", "lag", *hub_at(port or hub.port), "--store", "sqlite:x.db")
            Path("x.db").touch()
        code = main([*map(str, arguments), *more])
        out, err = capsys.readouterr()

        assert out == ""
        assert err.count("\n") == 1, err
        assert err.startswith("eventproc: ")
        return code, err

    return refused


@pytest.mark.parametrize("part", [HUB, STORE])
def test_no_credential_is_reported_in_one_line(refused, part):
    """Azure's own message has a dozen, which are mostly about what is not set up."""
    code, err = refused(part, IDENTITY_ENDPOINT="", IDENTITY_HEADER="")

    assert code == BAD_INPUT
    assert "no credential was found" in err
    assert "az login" in err


@pytest.mark.parametrize("part", [HUB, STORE])
def test_a_credential_that_fails_is_named(refused, identity, part):
    """Those that are only not set up are left out."""
    identity.status = 400
    code, err = refused(part)

    assert code == BAD_INPUT
    assert "no credential gave a token. ManagedIdentityCredential failed: " in err
    assert "EnvironmentCredential" not in err


@pytest.mark.parametrize(
    ("part", "reason"), [(HUB, "InvalidAudience"), (STORE, "(403 AuthenticationFailed)")]
)
def test_a_token_for_another_service_is_refused(refused, identity, part, reason):
    """The service's own reason is kept."""
    identity.audience = "https://elsewhere.example"
    code, err = refused(part)

    assert code == BAD_INPUT
    assert reason in err


def test_a_missing_role_of_a_receiver_is_named(refused, tls):
    """The service names the right, and the message the role that has it."""
    rules = TokenRules(rights_by_identity={"another": {Right.LISTEN}})
    with EventHubsEmulator(
        {"orders": 1}, certificate=tls.certificate, key=tls.key, tokens=rules
    ) as other:
        code, err = refused(HUB, port=other.port)

    assert code == BAD_INPUT
    assert "the role Azure Event Hubs Data Receiver" in err


def test_a_missing_role_at_the_storage_is_named(refused, tls):
    """Azurite gives every identity every right, so the storage account is a fake."""
    with FakeStorage(tls, 403, "AuthorizationPermissionMismatch") as storage:
        code, err = refused(STORE, "--storage-account", storage.endpoint)

    assert code == BAD_INPUT
    assert "lacks the right to list blobs (403 AuthorizationPermissionMismatch)" in err
    assert "the role Storage Blob Data Contributor" in err


@pytest.mark.parametrize("part", [HUB, STORE])
def test_a_certificate_of_an_unknown_ca_is_refused(refused, part):
    """The remedy is an option."""
    code, err = refused(part, EVENTPROC_CA_BUNDLE="")

    assert code == BAD_INPUT
    assert "the server's certificate is not trusted" in err
    assert "--ca-bundle" in err


def test_a_certificate_is_checked_over_websockets_too(refused, hub):
    """There aiohttp connects, whose errors are others."""
    code, err = refused(
        HUB, "--transport", "websocket", port=hub.websocket_port, EVENTPROC_CA_BUNDLE=""
    )

    assert code == BAD_INPUT
    assert "the server's certificate is not trusted" in err


@pytest.mark.parametrize("part", [HUB, STORE])
def test_a_missing_ca_bundle_is_named(refused, part):
    """It is an option, so the message names that."""
    code, err = refused(part, "--ca-bundle", "/nowhere/ca.pem")

    assert code == BAD_INPUT
    assert "--ca-bundle is '/nowhere/ca.pem': cannot be read as certificates" in err


@pytest.mark.parametrize("part", [HUB, STORE])
@pytest.mark.parametrize(
    ("user", "status", "code", "reason"),
    [
        (
            "anna:secret",
            None,
            BAD_INPUT,
            "it wants user and password: give http://USER:PASSWORD@HOST:PORT",
        ),
        (None, 403, BAD_INPUT, "does it allow this host and port?"),
        (None, 502, UNREACHABLE, "refuses the connection (status 502)"),
    ],
)
def test_a_proxy_that_refuses_is_named(refused, hub, part, user, status, code, reason):
    """Only what an operator has to change makes the exit code that of a wrong option."""
    with ConnectProxy(user, status) as proxy:
        found, err = refused(
            part, "--proxy", f"http://127.0.0.1:{proxy.port}", port=hub.websocket_port
        )

    assert (found, reason in err) == (code, True), err


@pytest.mark.parametrize("part", [HUB, STORE])
def test_a_proxy_that_is_away_may_come_back(refused, hub, part):
    """So the exit code means that a restart may help."""
    port = free_port()
    code, err = refused(part, "--proxy", f"http://127.0.0.1:{port}", port=hub.websocket_port)

    assert code == UNREACHABLE
    assert f"the HTTP proxy 127.0.0.1:{port} cannot be reached (connection refused)" in err


@pytest.mark.parametrize(
    ("options", "env", "reason"),
    [
        ((), {"EVENTPROC_CONNECTION_STRING": "x"}, "give --namespace, which uses an identity, or"),
        ((), {"AZURE_STORAGE_CONNECTION_STRING": "x"}, "give --storage-account, which uses an"),
        (("--proxy", "proxy:8080"), {}, "--proxy: give http://HOST:PORT"),
        (("--proxy", "http://u:hush@proxy"), {}, "--proxy: give http://HOST:PORT"),
        (("--storage-account", "http://127.0.0.1/a"), {}, "begin it with https://"),
        (("--storage-account", "Contoso"), {}, "give the account's name, for example contoso"),
    ],
)
def test_options_that_contradict_each_other_are_refused(refused, options, env, reason):
    """Nothing is connected, and no secret is repeated."""
    code, err = refused(STORE, *options, **env)

    assert code == BAD_INPUT
    assert reason in err
    assert "hush" not in err


def test_a_missing_extra_is_named(command):
    """A finder plays that azure-identity is not installed."""
    (command.folder / "sitecustomize.py").write_text(
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'azure.identity':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
    )
    code, _, err = command.run(
        *("checkpoints", "list", *hub_at(1), "--without-hub", "--store", "blob:box"),
        *("--storage-account", "contoso"),
        PYTHONPATH=str(command.folder),
    )

    assert code == BAD_INPUT
    assert "pip install 'eventproc[identity]'" in err
