"""What the tokens of one connection allow."""

import base64
import json

import pytest

from eventproc.emulator._amqp.refusal import RefusedError
from eventproc.emulator._links.interfaces import Access
from eventproc.emulator._tokens import JWT_TYPE, Right, TokenRules

RULES = TokenRules(
    rights_by_identity={"reader": [Right.LISTEN], "writer": [Right.SEND], "owner": list(Right)}
)
LISTEN, SEND = (Right.LISTEN, Right.MANAGE), (Right.SEND, Right.MANAGE)


def token(identity, expires_at_s):
    claims = {"aud": "https://eventhubs.azure.net", "exp": expires_at_s, "oid": identity}
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode()}.signature"


def present(access, hub, identity, expires_at_s=100.0, now_s=0.0):
    access.present(hub, JWT_TYPE, token(identity, expires_at_s), now_s)


def may(access, hub, rights, now_s=0.0):
    try:
        access.require(hub, rights, f"{hub}/path", now_s)
    except RefusedError:
        return False
    return True


def test_a_refusal_names_the_right_and_the_path():
    """The clients show it."""
    with pytest.raises(RefusedError, match=r"Listen.*orders/path"):
        Access(RULES).require("orders", LISTEN, "orders/path", 0)


def test_without_rules_everything_is_allowed():
    """Tokens are not even read."""
    access = Access(None)
    access.present("orders", JWT_TYPE, "no token", 0)

    assert may(access, "orders", LISTEN)
    assert access.next_expiry_s() is None
    assert list(access.expired(1e12)) == []


def test_without_a_token_nothing_is_allowed():
    """Also if there is one for another hub."""
    access = Access(RULES)
    present(access, "others", "owner")

    assert not may(access, "orders", LISTEN)


@pytest.mark.parametrize(
    ("identity", "can_listen", "can_send"),
    [
        ("reader", True, False),
        ("writer", False, True),
        ("owner", True, True),
        ("nobody", False, False),
    ],
)
def test_one_of_the_rights_is_enough(identity, can_listen, can_send):
    """A publisher may use the right to manage, too."""
    access = Access(RULES)
    present(access, "orders", identity)

    assert (may(access, "orders", LISTEN), may(access, "orders", SEND)) == (can_listen, can_send)


def test_the_case_of_a_hubs_name_does_not_matter():
    """As in the service."""
    access = Access(RULES)
    present(access, "Orders", "reader")

    assert may(access, "oRDERS", LISTEN)
    assert list(access.expired(100)) == ["orders"]


def test_a_newer_token_replaces_the_former_one():
    """With its rights and its expiry."""
    access = Access(RULES)
    present(access, "orders", "reader", 100.0)
    present(access, "orders", "writer", 200.0, now_s=50.0)

    assert not may(access, "orders", LISTEN, 150.0)
    assert may(access, "orders", SEND, 150.0)
    assert access.next_expiry_s() == 200.0


def test_a_token_that_is_refused_leaves_the_former_one():
    """The client may try again until that expires."""
    access = Access(RULES)
    present(access, "orders", "reader")
    with pytest.raises(RefusedError, match="InvalidToken"):
        access.present("orders", JWT_TYPE, "no token", 0)

    assert may(access, "orders", LISTEN)


def test_a_token_that_has_expired_allows_nothing():
    """It is forgotten once, and the next expiry is that of the others."""
    access = Access(RULES)
    present(access, "orders", "reader", 100.0)
    present(access, "others", "reader", 300.0)
    access.present("keyed", "servicebus.windows.net:sastoken", "", 0)
    first = access.next_expiry_s()

    assert (first, may(access, "orders", LISTEN, 100.0)) == (100.0, False)
    assert list(access.expired(99.0)) == []
    assert list(access.expired(100.0)) == ["orders"]
    assert list(access.expired(100.0)) == []
    assert access.next_expiry_s() == 300.0
    assert may(access, "others", LISTEN, 100.0)
    assert may(access, "keyed", LISTEN, 1e12)
