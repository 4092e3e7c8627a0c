"""Tokens of Entra ID: the default credential, and credentials for several event loops."""

from eventproc.identity.shared_credential import (
    AnyTokenCredential,
    NoTokenError,
    SharedCredential,
    shared,
)

__all__ = ["AnyTokenCredential", "NoTokenError", "SharedCredential", "shared"]
