"""Certificates for servers on loopback, of a CA that nobody else trusts."""

from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass(frozen=True)
class Certificates:
    """Files with the CA's certificate, and with certificate and key of a server on loopback."""

    ca: Path
    certificate: Path
    key: Path


def certificates_in(folder: Path) -> Certificates:
    """Make a CA and a server's certificate, and write them into a folder."""
    ca = trustme.CA()
    server = ca.issue_cert("127.0.0.1", "localhost")
    files = Certificates(folder / "ca.pem", folder / "server.pem", folder / "server.key")
    ca.cert_pem.write_to_path(files.ca)
    server.private_key_pem.write_to_path(files.key)
    for part in server.cert_chain_pems:
        part.write_to_path(files.certificate, append=True)
    return files
