"""Tokens of Entra ID: the credential that is found, and its use by several event loops."""

from eventproc.identity.shared_credential import (
    AnyTokenCredential,
    NoTokenError,
    SharedCredential,
    shared,
)

__all__ = ["AnyTokenCredential", "NoTokenError", "SharedCredential", "shared"]
