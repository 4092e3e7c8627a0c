"""Where to listen, by default for this machine alone; and one answer for several processors."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc import ConfigurationError
from eventproc._base.http.address import ListenAddress, parse_address, verdict


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8080", ListenAddress("127.0.0.1", 8080)),
        (":8080", ListenAddress("127.0.0.1", 8080)),
        ("0.0.0.0:8080", ListenAddress("0.0.0.0", 8080)),
        ("localhost:0", ListenAddress("localhost", 0)),
        ("[::1]:65535", ListenAddress("::1", 65535)),
        ("unix:/run/a.sock", ListenAddress(path="/run/a.sock")),
    ],
)
def test_an_address_without_a_host_is_of_this_machine(text, address):
    """All others have to be asked for."""
    assert parse_address(text, "--http") == address


@pytest.mark.parametrize(
    "text", ["", "here", "here:", "1.2.3.4", "::1:80", "[]:80", "a:65536", "a:-1", "a:²", "unix:"]
)
def test_an_address_of_another_form_is_refused_with_its_option(text):
    """The message shows what was given, and two addresses that would do."""
    with pytest.raises(ConfigurationError) as refused:
        parse_address(text, "--http")

    assert str(refused.value) == (
        f"--http is {text!r}: give PORT for this machine alone, such as 8080, or HOST:PORT, such "
        "as 0.0.0.0:8080 for all; a port is at most 65535"
    )


@given(
    st.sampled_from(["127.0.0.1", "0.0.0.0", "::", "fe80::1", "a.example"]),
    st.integers(0, 65_535),
)
def test_the_text_of_an_address_is_parsed_as_the_same_address(host, port):
    """IPv6 included."""
    address = ListenAddress(host, port)

    assert parse_address(str(address), "") == address


ENTRIES = st.lists(st.fixed_dictionaries({"ok": st.booleans()}))


@given(ENTRIES)
def test_an_answer_is_green_if_each_processor_is(entries):
    """Without any it is green: there is nothing to complain of."""
    answer = verdict(entries)

    assert answer.status == (503 if {"ok": False} in entries else 200)
    assert answer.body == {"ok": answer.status == 200, "processors": entries}


@given(ENTRIES, ENTRIES)
def test_the_answers_of_several_processes_are_joined_by_their_lists(one, other):
    """The joined answer is the one that a single process would give for all."""
    bodies: list[Any] = [verdict(each).body for each in (one, other)]
    joined = verdict(entry for body in bodies for entry in body["processors"])

    assert joined == verdict([*one, *other])
