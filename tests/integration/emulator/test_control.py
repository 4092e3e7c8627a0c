"""The control endpoint carries out every valid request, and answers every other with the reason."""

import asyncio
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventproc._base.http.server import CONNECTIONS_MAX
from eventproc.emulator import EventHubsEmulator
from eventproc.emulator._amqp.framing import AMQP_HEADER

from .control_client import ask


@pytest.fixture
def emulator():
    """Yield an emulator for one test, with its control endpoint."""
    with EventHubsEmulator({"orders": 2}, health_port=0) as emulator:
        yield emulator


def test_the_control_endpoint_reports_health_and_hubs(emulator):
    """Health has the form of the official emulator's; hubs have their partitions and numbers."""
    health = ask(emulator, "/health")
    _, hubs = ask(emulator, "/hubs")

    assert health == (200, {"status": "healthy"})
    assert hubs["hubs"]["orders"]["partitions"]["0"]["next_sequence_number"] == 0
    assert hubs["connection_string"] == emulator.connection_string


@pytest.mark.parametrize("name", ["refuse-connections", "refuse-links", "be-busy", "fall-silent"])
def test_every_lasting_fault_can_be_set_and_cleared(emulator, name):
    """The endpoint accepts each lasting fault, and its answer has no fields."""
    assert ask(emulator, f"/faults/{name}", {"duration_s": 0.001}) == (200, {})
    assert ask(emulator, "/faults/clear", {}) == (200, {})


def test_the_answer_to_an_immediate_fault_says_what_it_did(emulator):
    """``drop-connections`` and ``expire-before`` return counts."""
    given = {"hub": "orders", "partition_id": "0", "sequence_number": 5}

    assert ask(emulator, "/faults/drop-connections", {}) == (200, {"dropped": 0})
    assert ask(emulator, "/faults/expire-before", given) == (200, {"dropped": 0})
    assert ask(emulator, "/faults/stop", {}) == (200, {})
    assert ask(emulator, "/faults/start", {}) == (200, {})


@pytest.mark.parametrize(
    ("path", "given", "status", "message"),
    [
        ("/nothing", None, 404, "/nothing"),
        ("/faults/be-buzy", {}, 404, "/faults/be-busy"),
        ("/faults/clear", None, 404, "GET /faults/clear"),
        ("/faults/be-busy", {}, 400, "duration_s"),
        ("/faults/be-busy", {"duration_s": "1"}, 400, "duration_s"),
        ("/faults/be-busy", [], 400, "object"),
        ("/faults/displace-receivers", {}, 400, "hub"),
        ("/faults/displace-receivers", {"hub": "nobody"}, 400, "nobody"),
        ("/faults/expire-before", {"hub": "orders", "partition_id": "x"}, 400, "sequence_number"),
        ("/faults/drop-connections", {"hub": "nobody"}, 400, "no event hub 'nobody'"),
        ("/faults/drop-connections", {"partition_id": "0"}, 400, "of which event hub"),
        ("/faults/drop-connections", {"hubs": "orders"}, 400, "there are: hub, partition_id"),
        ("/faults/delay-deliveries", {"delay_s": 1, "hub": "nobody"}, 400, "no event hub"),
        ("/faults/delay-deliveries", {"delay_s": 1, "partition_id": "0"}, 400, "of which event"),
        ("/faults/be-busy", {"duration_s": 1e300}, 400, "seconds from 0 to"),
        ("/faults/be-busy", {"duration_s": -1}, 400, "seconds from 0 to"),
        ("/faults/add-partitions", {"hub": "orders", "count": 1e300}, 400, "from 1 to 2048"),
        ("/faults/add-partitions", {"hub": "orders", "count": 1.5}, 400, "whole number"),
        ("/faults/add-partitions", {"hub": "orders", "count": 2047}, 400, "more than 2048"),
        (
            "/faults/expire-before",
            {"hub": "orders", "partition_id": "9", "sequence_number": 1},
            400,
            "no partition '9'",
        ),
    ],
)
def test_an_invalid_request_is_refused_with_the_reason(emulator, path, given, status, message):
    """The status is 400 or 404, and the message names what is wrong."""
    answer = ask(emulator, path, given)

    assert answer[0] == status
    assert message in answer[1]["error"]


names = st.sampled_from(["hub", "partition_id", "duration_s", "delay_s", "sequence_number"])
given_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("orders"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
FAULTS = (
    *("drop-connections", "displace-receivers", "delay-deliveries", "refuse-connections"),
    *("refuse-links", "refuse-offsets", "be-busy", "fall-silent", "expire-before"),
    *("add-partitions", "recreate-hub", "clear", "start"),
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    fault=st.sampled_from(FAULTS),
    given_=given_values | st.dictionaries(names | st.just("count"), given_values, max_size=4),
)
def test_any_json_is_carried_out_or_refused_with_the_reason(emulator, caplog, fault, given_):
    """No request causes a traceback."""
    status, answer = ask(emulator, f"/faults/{fault}", raw_body=json.dumps(given_).encode())

    assert status in {200, 400}
    assert status == 200 or answer["error"]
    assert caplog.records == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[" * 40_000, "nested more than 100 deep"),
        (b'{"duration_s": 1e300}', "seconds from 0 to"),
        (b'{"duration_s": Infinity}', "not a finite number"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
    ],
)
def test_an_invalid_body_is_refused_with_the_reason(emulator, body, message):
    """The message says what is wrong with it."""
    status, answer = ask(emulator, "/faults/be-busy", raw_body=body)

    assert status == 400
    assert message in answer["error"]


async def test_bytes_that_are_not_http_are_refused(emulator):
    """The status is 400, and the endpoint answers the next request."""
    for garbage in (
        AMQP_HEADER + b"\r\n\r\n",
        b"\xff\r\n\r\n",
        b"POST / HTTP/1.1\r\nX: " + b"x" * 100_000,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", emulator.health_port)
        writer.write(garbage)
        answer = await reader.readline()
        writer.close()

        assert answer.split()[1] == b"400"
    assert (await asyncio.to_thread(ask, emulator, "/health"))[0] == 200


async def test_a_request_that_never_ends_does_not_delay_the_end_of_the_emulator():
    """Its connection is closed, and no task is left."""
    with EventHubsEmulator({"orders": 1}, health_port=0) as emulator:
        reader, writer = await asyncio.open_connection("127.0.0.1", emulator.health_port)
        writer.write(b"GET /hea")
        await writer.drain()
        await asyncio.to_thread(ask, emulator, "/health")
    rest = await reader.read()
    writer.close()

    assert rest == b""


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example", "Content-Type": "text/plain"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Host": "rebound.evil.example"},
        {"Host": "rebound.evil.example", "Origin": "http://rebound.evil.example"},
    ],
)
def test_a_page_of_another_site_changes_and_reads_nothing(emulator, headers):
    """A browser sends such requests for it without asking, and from this machine."""
    assert ask(emulator, "/faults/add-partitions", {"hub": "orders", "count": 1}, **headers)[0] == (
        403
    )
    assert "Host" not in headers or ask(emulator, "/hubs", **headers)[0] == 403
    assert emulator.partition_ids("orders") == ["0", "1"]


async def test_requests_that_are_not_sent_to_their_end_do_not_keep_out_others(emulator):
    """The oldest are cut, so few descriptors are used."""
    count = CONNECTIONS_MAX + 20
    clients = []
    for _ in range(count):
        clients.append(await asyncio.open_connection("127.0.0.1", emulator.health_port))
        clients[-1][1].write(b"GET /hea")
    answer = await asyncio.to_thread(ask, emulator, "/health")
    cut = [reader for reader, _ in clients[:20]]
    await asyncio.wait_for(
        asyncio.gather(*(reader.read() for reader in cut), return_exceptions=True), 30
    )
    for _, writer in clients:
        writer.close()

    assert answer[0] == 200
