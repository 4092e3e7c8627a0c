"""Whose requests are answered."""

import pytest

from eventproc._base.http.guard import is_of_another_site, is_own_host, may_open_socket, own_names

NAMES = {"metrics.example.com"}


@pytest.mark.parametrize(
    "host",
    [
        None,
        "localhost",
        "127.0.0.1:8080",
        "10.1.2.3:8080",
        "[::1]:8080",
        "[fe80::1%eth0]",
        "orders",
        "orders:5300",
        "orders.prod.svc:8080",
        "orders.prod.svc.cluster.local.",
        "ip-10-0-0-1.ec2.internal",
        "METRICS.example.com:80",
    ],
)
def test_addresses_private_names_and_names_that_were_given_are_this_server(host):
    """Probes and scrapers use them; nobody can have them resolved by the public DNS."""
    assert is_own_host(host, NAMES)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "svc.evil",
        "localhost@evil.example",
        "",
        "[",
        "a\u2100b",
    ],
)
def test_a_name_of_the_public_dns_is_not(host):
    """A page that had it resolved to this machine would read the answer (DNS rebinding)."""
    assert not is_own_host(host, NAMES)


@pytest.mark.parametrize(
    ("search", "host", "is_own"),
    [
        ("search prod.svc.cluster.local svc.cluster.local", "orders.prod:8080", True),
        ("search prod.svc.cluster.local svc.cluster.local", "orders.other:8080", False),
        ("search corp.example.com", "vm7.corp.example.com", True),
        ("search corp.example.com", "corp.example.com.evil.example", False),
        ("search com .", "evil.com", False),
        ("nameserver 10.0.0.1", "orders.prod", False),
    ],
)
def test_names_below_a_search_domain_are_of_this_organisation(tmp_path, search, host, is_own):
    """A pod's Service, as the autoscaler's documentation names it; a machine's full name."""
    resolver = tmp_path / "resolv.conf"
    resolver.write_text(f"options ndots:5\n{search}\n")

    assert is_own_host(host, own_names("0.0.0.0", resolver)) is is_own


def test_without_a_file_of_the_resolver_there_are_fewer_names(tmp_path):
    """As on Windows."""
    assert not is_own_host("orders.prod", own_names("0.0.0.0", tmp_path / "none"))


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "http://a\u2100b", "\udcff", "null"])
def test_an_origin_that_is_no_url_is_of_another_site(origin):
    """It is no reason for an error."""
    assert is_of_another_site({"Host": "localhost:1", "Origin": origin})


@pytest.mark.parametrize(
    ("headers", "is_answered"),
    [
        ({"Host": "emulator:5673"}, True),
        ({"Host": "localhost:5673", "Origin": "http://localhost:3000"}, True),
        ({"Host": "emulator:5673", "Origin": "http://emulator:3000"}, True),
        ({"Host": "localhost:5673", "Origin": "https://evil.example"}, False),
        ({"Host": "evil.example:5673", "Origin": "http://evil.example:5673"}, False),
        ({"Host": "localhost:5673", "Origin": "http://6.6.6.6"}, False),
        ({"Host": "localhost:5673", "Origin": "null"}, False),
        ({"Origin": "http://["}, False),
    ],
)
def test_a_websocket_is_for_programs_and_for_pages_from_this_machine(headers, is_answered):
    """Browsers let any page open one."""
    assert may_open_socket(headers, frozenset()) is is_answered
