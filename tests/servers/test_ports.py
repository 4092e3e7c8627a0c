"""Ports for servers that tests start: no connection of another program takes them meanwhile."""

import socket
from pathlib import Path

from tests.servers.ports import free_port


def test_a_port_is_not_one_that_outgoing_connections_get():
    """A broker that is down keeps its port, so its next start does not fail."""
    linux = Path("/proc/sys/net/ipv4/ip_local_port_range")
    first = int(linux.read_text().split()[0]) if linux.exists() else 32_768

    assert max(free_port() for _ in range(100)) < first


def test_a_port_in_use_is_passed_over(monkeypatch):
    """The next draw is taken."""
    with socket.socket() as used:
        used.bind(("127.0.0.1", free_port()))
        taken = used.getsockname()[1]
        free = free_port()
        monkeypatch.setattr("tests.servers.ports._PORTS", [taken, taken, taken, free])

        assert free_port() == free
