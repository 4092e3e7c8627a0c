"""Event Hubs' Kafka endpoint with an identity: the genuine client, TLS, SASL's OAUTHBEARER.

A fake of the endpoint is in front of a real broker, and answers the two requests of SASL itself.
"""

import asyncio
import json
import signal
import time
from datetime import timedelta
from http import HTTPStatus
from textwrap import dedent
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from eventproc._command.terminal.exits import BAD_INPUT, OK
from eventproc.errors import ConfigurationError
from eventproc.models import EventPosition, OutgoingEvent
from eventproc.sources.kafka import KafkaEventSource, KafkaPublisher
from spark_integration._publish.options import parse_publish_options
from tests.servers.kafka_broker import KafkaBroker

from .fake_kafka_endpoint import FakeKafkaEndpoint
from .test_command import FAST, HANDLER, read_until
from .test_spark import publish as publish_in_task

HOST = "localhost"
AUDIENCE = f"https://{HOST}"
LONG = timedelta(seconds=30)


@pytest.fixture(name="endpoint")
def _endpoint(tls):
    """Yield the endpoint, in front of a broker that tells clients to connect to it."""
    with FakeKafkaEndpoint(tls, AUDIENCE) as endpoint:
        with KafkaBroker(advertised=f"{HOST}:{endpoint.port}") as broker:
            endpoint.broker_port = int(broker.bootstrap_servers.rpartition(":")[2])
            yield endpoint


@pytest.fixture(name="here")
def _here(endpoint, command, tmp_path):
    """Return the options that name hub and store, without a secret."""
    (tmp_path / "shop.py").write_text(dedent(HANDLER))
    (tmp_path / "x.db").touch()
    return [
        *("--namespace", HOST, "--eventhub", "orders", "--transport", "kafka"),
        *("--custom-endpoint", f"sb://{HOST}:{endpoint.port}", "--store", "sqlite:x.db"),
    ]


@pytest.fixture(name="settings")
def _settings(endpoint, identity, tls):
    """Return settings of a client that connects to the endpoint with tokens."""

    def token(_):
        status, answer = identity._answer(AUDIENCE)
        assert status == 200
        return answer["access_token"], float(answer["expires_on"])

    return {
        "bootstrap.servers": f"{HOST}:{endpoint.port}",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "ssl.ca.location": str(tls.ca),
        "oauth_cb": token,
    }


@pytest.fixture(name="publish")
def _publish(settings):
    """Return a function that publishes events through the endpoint."""
    admin = AdminClient(settings)
    (created,) = admin.create_topics([NewTopic("orders", 1, 1)]).values()
    created.result(30)
    producer = Producer(settings)

    def publish(*bodies):
        for body in bodies:
            producer.produce("orders", body)
            assert producer.flush(30) == 0

    yield publish
    producer.flush(0)


@pytest.mark.long
def test_events_are_read_over_several_tokens(command, endpoint, identity, here, publish):
    """The client asks for the namespace's own scope, again before a token expires."""
    publish("a")
    identity.lifetime_s = 8.0
    process = command.start("run", "shop:Count", *here, *FAST)
    first = read_until(process, 1)
    before = len(endpoint.tokens)
    deadline = time.monotonic() + 90
    while len(endpoint.tokens) < before + 4:
        assert time.monotonic() < deadline, endpoint.tokens
        time.sleep(0.1)
    identity.lifetime_s = 3600.0
    publish("b")
    second = read_until(process, 1)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    events = {json.loads(line)["event"] for line in err.splitlines()}

    assert (process.returncode, first, second) == (OK, ["a"], ["b"])
    assert "partition_ids_failed" not in events
    assert set(identity.asked) == {AUDIENCE}
    assert endpoint.refused == []


@pytest.mark.long
def test_positions_of_a_kafka_group_are_imported(command, endpoint, here, settings, publish):
    """The broker is asked for the group, and for the topic, with tokens."""
    publish("a", "b", "c")
    consumer = Consumer(settings | {"group.id": "old"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 2)], asynchronous=False)
    consumer.close()
    before = len(endpoint.tokens)
    imported = command.run("checkpoints", "import", "--from", "kafka:old", "--yes", *here)
    _, listed, _ = command.run("checkpoints", "list", "--format", "json", *here)

    assert imported[0] == OK, imported
    assert [c["sequence_number"] for c in json.loads(listed)["checkpoints"]] == [1]
    assert len(endpoint.tokens) >= before + 2
    assert endpoint.refused == []


class Credential:
    """Asks the fake of the identity; an ordinary credential."""

    def __init__(self, identity):
        self._identity = identity

    def get_token(self, *_scopes, **_options):
        """Return its token; raise if it gives none."""
        status, answer = self._identity._answer(AUDIENCE)
        if status != HTTPStatus.OK:
            raise OSError("the identity is away")
        return Token(answer["access_token"], int(answer["expires_on"]))


class Token(NamedTuple):
    """As Azure's."""

    token: str
    expires_on: int


def publisher(endpoint, identity, tls):
    """Return a publisher to the endpoint."""
    return KafkaPublisher.with_identity(
        HOST,
        "orders",
        Credential(identity),
        bootstrap_servers=f"{HOST}:{endpoint.port}",
        config={"ssl.ca.location": str(tls.ca)},
    )


@pytest.mark.long
@pytest.mark.usefixtures("publish")  # It creates the topic.
async def test_events_are_published_over_several_tokens(endpoint, identity, tls):
    """With new tokens in time; what was published can be read with an identity, too."""
    identity.lifetime_s = 8.0
    source = KafkaEventSource.with_identity(
        HOST,
        "orders",
        Credential(identity),
        bootstrap_servers=f"{HOST}:{endpoint.port}",
        config={"ssl.ca.location": str(tls.ca)},
    )
    async with publisher(endpoint, identity, tls) as open_publisher, source:
        await open_publisher.publish([OutgoingEvent(body=b"a")], patience=LONG)
        before = len(endpoint.tokens)
        async with asyncio.timeout(90):
            while len(endpoint.tokens) < before + 4:  # noqa: ASYNC110 - it is asked
                await asyncio.sleep(0.1)
        await open_publisher.publish([OutgoingEvent(body=b"b")], patience=LONG)
        receiver = await source.open_receiver("$Default", "0", EventPosition.earliest())
        bodies: list[bytes] = []
        async with asyncio.timeout(60):
            while len(bodies) < 2:
                bodies += [e.body for e in await receiver.receive(events_max=2, wait_max=LONG)]
        await receiver.close()

    assert bodies == [b"a", b"b"]
    assert endpoint.refused == []


@pytest.mark.long
@pytest.mark.usefixtures("publish")
async def test_a_publisher_without_a_token_or_with_a_refused_one_says_so(endpoint, identity, tls):
    """At the start, with the reason of the credential or of the endpoint."""
    identity.status = 500
    with pytest.raises(ConfigurationError, match="gave no token: the identity is away"):
        await publisher(endpoint, identity, tls).open()
    identity.status = 200
    identity.audience = "https://elsewhere.example"
    with pytest.raises(ConfigurationError, match="Unauthorized access"):
        await publisher(endpoint, identity, tls).open()


@pytest.mark.long
@pytest.mark.usefixtures("publish")
def test_spark_publishes_to_the_endpoint_with_an_identity(endpoint, executor, tls):
    """The task needs no secret."""
    options = parse_publish_options(
        {
            "publish": "kafka",
            "fullyQualifiedNamespace": HOST,
            "topic": "orders",
            "kafka.bootstrap.servers": f"{HOST}:{endpoint.port}",
            "caBundle": str(tls.ca),
        }
    )

    assert executor.submit(publish_in_task, options, [b"a", b"b"]).result(60) == 2


@pytest.mark.long
def test_an_identity_that_gives_no_token_is_an_error_with_its_remedy(command, here, identity):
    """The same line as over AMQP, at the start."""
    identity.status = 400
    code, _, err = command.run("checkpoints", "lag", *here)

    assert code == BAD_INPUT
    assert "no credential gave a token. ManagedIdentityCredential failed: " in err
    assert err.count("\n") == 1


@pytest.mark.long
def test_a_token_that_is_refused_is_an_error_at_once(command, endpoint, here, identity, publish):
    """The text of the endpoint is kept."""
    publish("a")
    identity.audience = "https://elsewhere.example"
    code, _, err = command.run("checkpoints", "lag", *here)

    assert code == BAD_INPUT, err
    assert "Unauthorized access" in err


@pytest.mark.long
def test_reading_goes_on_after_the_identity_was_away(command, endpoint, identity, here, publish):
    """The token expires meanwhile; the log names the reason, and no event is lost."""
    publish("a")
    identity.lifetime_s = 8.0
    process = command.start("run", "shop:Count", *here, *FAST, "--log-format", "json")
    first = read_until(process, 1)
    identity.status = 500
    failed = next(json.loads(line) for line in process.stderr if "gave no token" in line)
    identity.status, identity.lifetime_s = 200, 3600.0
    publish("b")
    second = read_until(process, 1)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)

    assert (process.returncode, first, second) == (OK, ["a"], ["b"])
    assert "cannot be read: the credential gave no token: " in failed["error"]
