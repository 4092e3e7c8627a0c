"""Which requests are answered."""

from http import HTTPStatus

import pytest

from eventproc._base.http.address import Request
from eventproc._command.dashboard.guard import RefusedError, check_change, check_host, check_origin

TOKEN = "t0ken"
JSON = {"Content-Type": "application/json"}


def request(headers, body=b"{}", local_host="127.0.0.1"):
    """Return a request to change something."""
    return Request(
        method="POST", path="/changes", headers=headers, body=body, local_host=local_host
    )


def refusal(check, *arguments):
    """Return the status with which a request is refused; ``None`` if it is not."""
    try:
        check(*arguments)
    except RefusedError as refused:
        return refused.status
    return None


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:8787",
        "127.0.0.1:1",
        "[::1]:8787",
        "page.example:443",
        "PAGE.example",
    ],
)
def test_a_host_that_this_is_gets_an_answer(host):
    """This machine's own names on a loopback address, and names that an operator gave."""
    assert refusal(check_host, request({"Host": host}), {"page.example"}) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8787",
        "localhost.evil.example",
        "10.1.2.3",
        "",
        "[",
        "localhost@evil.example",
    ],
)
def test_another_host_gets_none(host):
    """A page that had its own name resolved to this machine asks for that name."""
    assert refusal(check_host, request({"Host": host}), {"page.example"}) is HTTPStatus.FORBIDDEN


@pytest.mark.parametrize(("host", "is_answered"), [("10.1.2.3:80", True), ("localhost", False)])
def test_on_another_address_that_address_is_the_host(host, is_answered):
    """No name leads there unless an operator gave it."""
    asked = request({"Host": host}, local_host="10.1.2.3")

    assert (refusal(check_host, asked, set()) is None) is is_answered


def test_the_refusal_of_a_host_names_the_option():
    """For an operator behind a proxy."""
    with pytest.raises(RefusedError, match="--allow-host page"):
        check_host(request({"Host": "page:8787"}), set())


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ],
)
def test_the_page_itself_and_a_link_to_it_are_answered(headers):
    """As well as programs that are no browser."""
    assert refusal(check_origin, request({"Host": "localhost:1", **headers})) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://localhost:2"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
        {"Origin": "null", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ],
)
def test_a_page_of_another_origin_is_refused(headers):
    """Whatever it asks for, also with a form that leads here."""
    asked = request({"Host": "localhost:1", **headers})

    assert refusal(check_origin, asked) is HTTPStatus.FORBIDDEN


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        (JSON, b"{}", HTTPStatus.UNAUTHORIZED),
        ({**JSON, "X-Eventproc-Token": ""}, b"{}", HTTPStatus.UNAUTHORIZED),
        ({**JSON, "X-Eventproc-Token": "t0kem"}, b"{}", HTTPStatus.UNAUTHORIZED),
        ({**JSON, "X-Eventproc-Token": "t0k\u00e9n"}, b"{}", HTTPStatus.UNAUTHORIZED),
        ({**JSON, "X-Eventproc-Token": "t0k\udcffn"}, b"{}", HTTPStatus.UNAUTHORIZED),
        ({"X-Eventproc-Token": TOKEN}, b"{}", HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
        (
            {"X-Eventproc-Token": TOKEN, "Content-Type": "text/plain"},
            b"{}",
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        ),
        ({**JSON, "X-Eventproc-Token": TOKEN}, b"{", HTTPStatus.BAD_REQUEST),
        ({**JSON, "X-Eventproc-Token": TOKEN}, b"[]", HTTPStatus.BAD_REQUEST),
        ({**JSON, "X-Eventproc-Token": TOKEN}, b"\xff", HTTPStatus.BAD_REQUEST),
        ({**JSON, "X-Eventproc-Token": TOKEN}, b"[" * 60_000, HTTPStatus.BAD_REQUEST),
        ({**JSON, "X-Eventproc-Token": TOKEN}, b"{}", None),
    ],
)
def test_a_change_needs_the_token_and_a_json_object(headers, body, status):
    """In this order, so that nothing is said to those that have no token."""
    assert refusal(check_change, request(headers, body), TOKEN) is status
