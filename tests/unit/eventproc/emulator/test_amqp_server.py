"""Files with a certificate and its key, and what is said about those that cannot be used."""

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from eventproc.emulator._amqp_server import server_context
from eventproc.errors import ConfigurationError


@pytest.fixture(name="files", scope="module")
def _files(tmp_path_factory):
    """Return a folder with a certificate, its key, the same key encrypted, and another key."""
    folder = tmp_path_factory.mktemp("tls")
    server, other = (trustme.CA().issue_cert("127.0.0.1") for _ in range(2))
    server.cert_chain_pems[0].write_to_path(folder / "server.pem")
    server.private_key_pem.write_to_path(folder / "server.key")
    other.private_key_pem.write_to_path(folder / "other.key")
    key = load_pem_private_key(server.private_key_pem.bytes(), None)
    encrypted = key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    (folder / "encrypted.key").write_bytes(encrypted)
    (folder / "text").write_text("hello")
    return folder


@pytest.mark.parametrize(
    ("certificate", "key", "message"),
    [
        ("absent.pem", "server.key", r"the certificate '.*absent.pem' cannot be read: No such"),
        ("server.pem", "absent.key", r"the key '.*absent.key' cannot be read: No such"),
        ("server.pem", ".", r"the key '.*' cannot be read: Is a directory"),
        ("server.pem", "other.key", r"'.*other.key' does not belong to the certificate '.*pem'"),
        ("server.pem", "encrypted.key", r"'.*encrypted.key' is encrypted: give one without"),
        ("text", "server.key", r"the certificate '.*text' is not in PEM: it has no line '-----B"),
        ("server.pem", "text", r"the key '.*text' is not in PEM: it has no line 'PRIVATE KEY"),
        ("server.key", "server.pem", r"the certificate '.*server.key' is not in PEM"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(files, certificate, key, message):
    """OpenSSL would say ``PEM lib``, or ask for the passphrase on the terminal."""
    with pytest.raises(ConfigurationError, match=message):
        server_context(files / certificate, files / key)
