"""The tokens that the emulator takes, and the rights that they give."""

import base64
import json

import pytest

from eventproc.emulator._amqp.refusal import AUTH_FAILED, RefusedError
from eventproc.emulator._tokens import ALL_RIGHTS, JWT_TYPE, Grant, Right, TokenRules, grant_for

NOW_S = 1_800_000_000.0
EVENT_HUBS = "https://eventhubs.azure.net"


def jwt(claims):
    """Return a token with these claims, as text or as an object."""
    content = claims if isinstance(claims, str) else json.dumps(claims)
    return f"e30.{base64.urlsafe_b64encode(content.encode()).rstrip(b'=').decode()}.signature"


def token(**changes):
    """Return a token that is taken, but for these claims."""
    claims = {"aud": EVENT_HUBS, "exp": NOW_S + 60, "oid": "anna"} | changes
    return jwt({name: value for name, value in claims.items() if value is not None})


def grant(text, rules=None):
    return grant_for(rules or TokenRules(), JWT_TYPE, text, NOW_S)


@pytest.mark.parametrize(
    "audience",
    [EVENT_HUBS, f"{EVENT_HUBS}/", "https://servicebus.azure.net", "https://servicebus.azure.net/"],
)
def test_a_token_for_event_hubs_is_taken_until_it_expires(audience):
    """Without rules for identities it gives all rights."""
    assert grant(token(aud=audience)) == Grant(rights=ALL_RIGHTS, expires_at_s=NOW_S + 60)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "InvalidToken"),
        ("no token", "InvalidToken"),
        ("a.b", "InvalidToken"),
        ("a.%%%.c", "InvalidToken"),
        ("e30.e30.e30.e30", "InvalidToken"),
        (jwt("no json"), "InvalidToken"),
        (jwt([1]), "InvalidToken"),
        (token(aud=None), "InvalidAudience"),
        (token(aud="https://storage.azure.com"), "InvalidAudience: .*'https://storage.azure.com'"),
        (token(aud=[EVENT_HUBS]), "InvalidAudience"),
        (token(exp=NOW_S), r"ExpiredToken: .* '2027-01-15 08:00:00Z'"),
        (token(exp=NOW_S - 1), "ExpiredToken"),
        (token(exp=0), "ExpiredToken"),
        (token(exp=None), "InvalidToken"),
        (token(exp="soon"), "InvalidToken"),
        (token(exp=1e300), "InvalidToken"),
        (token(exp=-1e300), "InvalidToken"),
        (token(exp=float("nan")), "InvalidToken"),
        (jwt("[" * 100_000), "InvalidToken"),
    ],
)
def test_any_other_token_is_refused_with_the_reason(text, reason):
    """Nothing that a client sends raises another error, which would end the connection."""
    with pytest.raises(RefusedError, match=reason) as caught:
        grant(text)

    assert caught.value.condition == AUTH_FAILED


@pytest.mark.parametrize(
    ("identity", "rights"),
    [
        ("anna", {Right.LISTEN}),
        ("bert", {Right.SEND, Right.MANAGE}),
        ("carl", set()),
        (None, set()),
    ],
)
def test_an_identity_has_the_rights_that_the_rules_give_it(identity, rights):
    """Another one is known to be who it is, and may do nothing."""
    rules = TokenRules(
        rights_by_identity={"anna": [Right.LISTEN], "bert": [Right.SEND, Right.MANAGE]}
    )

    assert grant(token(oid=identity), rules).rights == rights


def test_a_signature_with_a_key_is_not_checked():
    """The emulator knows no keys; it never expires."""
    rules = TokenRules(rights_by_identity={})
    granted = grant_for(rules, "servicebus.windows.net:sastoken", "anything", NOW_S)

    assert granted == Grant(rights=ALL_RIGHTS, expires_at_s=None)
    assert not granted.has_expired(NOW_S * 2)


def test_a_grant_has_expired_at_its_time():
    """Not one second later."""
    granted = Grant(expires_at_s=NOW_S)

    assert granted.has_expired(NOW_S)
    assert not granted.has_expired(NOW_S - 0.001)
