"""The genuine ``DefaultAzureCredential`` reaches Entra ID with the CA and the proxy that are given.

A server on loopback stands for Entra ID: it gives no token, and shows what arrives.
"""

import asyncio
import ssl
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import trustme

from eventproc._base.identity import Network, NoTokenError, default_credential
from eventproc._base.network import HttpProxy
from eventproc.errors import MissingExtraError

SCOPE = "https://eventhubs.azure.net/.default"


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
        default_credential()
