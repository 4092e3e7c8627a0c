"""A hub and a storage account that take tokens over TLS, and an identity that has them."""

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from uuid import uuid4

import pytest
from azure.storage.blob import ContainerClient

from eventproc._base.identity import _credential
from eventproc.emulator import EventHubsEmulator, TokenRules
from eventproc.testing._azurite import Azurite
from tests.servers.certificates import certificates_in

from .fake_managed_identity import FakeManagedIdentity

NAMESPACE = "contoso.servicebus.windows.net"
OF_OTHERS = ("AZURE_", "EVENTPROC_", "IDENTITY_", "HTTP", "http", "MSI_")
"""Prefixes of variables that say where a hub, a store, an identity or a proxy is."""


@pytest.fixture(name="tls", scope="session")
def _tls(tmp_path_factory):
    """Return certificates of a CA that nobody else trusts."""
    return certificates_in(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def identity():
    """Yield a managed identity with tokens of an hour."""
    with FakeManagedIdentity() as fake:
        yield fake


@pytest.fixture(name="has_identity")
def _has_identity(identity, monkeypatch):
    """Give this process the identity, and nothing else of this machine's environment."""
    for name in [name for name in os.environ if name.startswith(OF_OTHERS)]:
        monkeypatch.delenv(name)
    for name, value in identity.env.items():
        monkeypatch.setenv(name, value)
    _credential.cache_clear()  # A process has one credential, which keeps its tokens.


@pytest.fixture(name="executor")
def _executor(has_identity):
    """Yield a process that has the identity."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


@pytest.fixture
def hub(tls):
    """Yield an emulator with TLS and WebSockets that checks tokens; its hub ``orders`` has two
    partitions."""
    with EventHubsEmulator(
        {"orders": 2, "dead": 1},
        consumer_groups=["one", "two"],
        certificate=tls.certificate,
        key=tls.key,
        websocket_port=0,
        tokens=TokenRules(),
    ) as emulator:
        yield emulator


@pytest.fixture(scope="session")
def account(tls):
    """Yield an Azurite that takes tokens over HTTPS."""
    with Azurite(certificate=(tls.certificate, tls.key)) as azurite:
        yield azurite


@pytest.fixture(name="box")
def _box(account, tls):
    """Return the name of an empty container."""
    name = f"box-{uuid4().hex}"
    with ContainerClient.from_connection_string(
        account.connection_string, name, connection_verify=str(tls.ca)
    ) as client:
        client.create_container()
    return name


class Command:
    """Runs the command with an identity, and with nothing else of this machine's environment."""

    def __init__(self, folder, env):
        self.folder, self.env = folder, env
        self.processes = []

    def start(self, *arguments, **env):
        """Start the command."""
        clean = {n: v for n, v in os.environ.items() if not n.startswith(OF_OTHERS)}
        process = subprocess.Popen(
            [sys.executable, "-m", "eventproc", *map(str, arguments)],
            cwd=self.folder,
            env=clean | self.env | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def run(self, *arguments, **env):
        """Run the command to its end; return exit code, standard output and standard error."""
        process = self.start(*arguments, **env)
        out, err = process.communicate(timeout=90)
        return process.returncode, out, err


@pytest.fixture
def command(tmp_path, identity, tls):
    """Yield a command that trusts the CA and has the identity."""
    made = Command(tmp_path, identity.env | {"EVENTPROC_CA_BUNDLE": str(tls.ca)})
    yield made
    for process in made.processes:
        process.kill()
        process.communicate()
