"""Reads the certificate with which the emulator serves TLS."""

import ssl
from pathlib import Path

from eventproc.errors import ConfigurationError


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return TLS for a server.

    Raises:
        ConfigurationError: A file cannot be read, is not in PEM, or the two do not belong together.
    """
    for what, path in (("certificate", certificate), ("key", key)):
        try:
            path.read_bytes()
        except OSError as error:
            raise ConfigurationError(
                f"the {what} {str(path)!r} cannot be read: {error.strerror}"
            ) from error
    asked: list[bool] = []

    def password() -> str:
        asked.append(True)  # Without this function OpenSSL would ask on the terminal.
        return ""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password)
    except ssl.SSLError as error:
        raise ConfigurationError(
            _reason(certificate, key, error, is_encrypted=bool(asked))
        ) from error
    return context


def _reason(certificate: Path, key: Path, error: ssl.SSLError, *, is_encrypted: bool) -> str:
    if is_encrypted:
        return f"the key {str(key)!r} is encrypted: give one without a passphrase"
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"the key {str(key)!r} does not belong to the certificate {str(certificate)!r}"
    for what, path, words in (
        ("certificate", certificate, b"-----BEGIN CERTIFICATE-----"),
        ("key", key, b"PRIVATE KEY-----"),
    ):
        if words not in path.read_bytes():
            return f"the {what} {str(path)!r} is not in PEM: it has no line {words.decode()!r}"
    return (
        f"the certificate {str(certificate)!r} with the key {str(key)!r} cannot be used: "
        f"{error.reason or error}"
    )
