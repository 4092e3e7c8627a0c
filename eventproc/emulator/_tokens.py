"""The tokens of Entra ID that the emulator takes, and the rights that they give. Pure.

Signatures are not checked: the emulator has no keys of Entra ID. Everything else is checked as the
service does: form, audience, expiry, and the roles of the identity.
"""

import base64
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from eventproc._base.bounded_json import read_json
from eventproc.emulator._amqp.refusal import AUTH_FAILED, RefusedError

AUDIENCES: Final = frozenset({"https://eventhubs.azure.net", "https://servicebus.azure.net"})
JWT_TYPE: Final = "jwt"
"""The type with which clients present a token of Entra ID; others have one for signatures."""

_PARTS: Final = 3
_LATEST_S: Final = datetime.max.replace(tzinfo=UTC).timestamp() - 1


class Right(StrEnum):
    """What a token allows, by the word that the service uses for it."""

    LISTEN = "Listen"
    SEND = "Send"
    MANAGE = "Manage"


ALL_RIGHTS: Final = frozenset(Right)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    """Which tokens are taken."""

    rights_by_identity: Mapping[str, Collection[Right]] | None = None
    """The rights of each identity, by the claim ``oid`` of its tokens; ``None``: all have all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What the newest token for a hub allows."""

    rights: Collection[Right] = field(default=ALL_RIGHTS)
    expires_at_s: float | None = None
    """Seconds since the epoch; ``None``: never."""

    def has_expired(self, now_s: float) -> bool:
        """Whether the token is of no use any more."""
        return self.expires_at_s is not None and self.expires_at_s <= now_s


def grant_for(rules: TokenRules, kind: str, token: str, now_s: float) -> Grant:
    """Return what a token allows.

    Raises:
        RefusedError: The token is not taken.
    """
    if kind != JWT_TYPE:
        return Grant()  # A shared access signature: keys are not checked.
    claims = _claims_of(token)
    audience, expires_on = claims.get("aud"), claims.get("exp")
    if not isinstance(audience, str) or audience.rstrip("/") not in AUDIENCES:
        raise RefusedError(
            AUTH_FAILED, f"InvalidAudience: The token has an invalid audience: '{audience}'."
        )
    if not isinstance(expires_on, int | float) or not 0 <= expires_on <= _LATEST_S:
        raise RefusedError(AUTH_FAILED, "InvalidToken: The token has no expiration time.")
    if expires_on <= now_s:
        at = datetime.fromtimestamp(expires_on, UTC)
        raise RefusedError(
            AUTH_FAILED,
            f"ExpiredToken: The token is expired. Expiration time: '{at:%Y-%m-%d %H:%M:%SZ}'.",
        )
    rights: Collection[Right] = ALL_RIGHTS
    if rules.rights_by_identity is not None:
        rights = rules.rights_by_identity.get(str(claims.get("oid")), ())
    return Grant(rights=frozenset(rights), expires_at_s=float(expires_on))


def _claims_of(token: str) -> dict[str, object]:
    parts = token.split(".")
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4) if len(parts) == _PARTS else ""
        claims = read_json(base64.urlsafe_b64decode(padded))
    except ValueError:
        claims = None
    if not isinstance(claims, dict):
        raise RefusedError(AUTH_FAILED, "InvalidToken: The token is not a JSON web token.")
    return claims
