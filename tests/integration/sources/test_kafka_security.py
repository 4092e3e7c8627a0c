"""A broker with TLS, SASL and access rights: what it takes, and what it refuses at once."""

import asyncio
from datetime import timedelta

import pytest
import trustme
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from eventproc import ConfigurationError, SourceUnavailableError
from eventproc.models import OutgoingEvent
from eventproc.sources.kafka import KafkaEventSource, KafkaPublisher
from tests.integration.sources.kafka_topic import KafkaTopic
from tests.integration.sources.processors import Fleet, numbered
from tests.servers.kafka_broker import KafkaBroker

PASSWORD = "s3cret"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
SOON = timedelta(seconds=20)


@pytest.fixture(name="ca", scope="module")
def _ca(tmp_path_factory):
    """Return files: the certificate of a CA that nobody else trusts, and that of another one."""
    folder = tmp_path_factory.mktemp("tls")
    ca, other = trustme.CA(), trustme.CA()
    ca.cert_pem.write_to_path(folder / "ca.pem")
    other.cert_pem.write_to_path(folder / "other.pem")
    server = ca.issue_cert("127.0.0.1", "localhost")
    key = load_pem_private_key(server.private_key_pem.bytes(), None)
    with (folder / "server.pem").open("wb") as file:
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        file.writelines(part.bytes() for part in server.cert_chain_pems)
    return folder / "ca.pem"


@pytest.fixture(name="broker", scope="module")
def _broker(ca):
    """Yield a broker with two users: anna may do everything, bob nothing."""
    users = f'user_anna="{PASSWORD}" user_bob="{PASSWORD}"'
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(ca.with_name("server.pem")),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.clients.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {users};",
        "listener.name.clients.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:anna;User:ANONYMOUS",
    }
    with KafkaBroker(settings=settings, protocol="SASL_SSL") as broker:
        admin = AdminClient(
            {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, **config_of(ca)}
        )
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        made = admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion("anna", info, PASSWORD.encode())]
        )
        made["anna"].result(30)
        yield broker


def config_of(ca, mechanism="PLAIN", **settings):
    """Return settings of a client; ``_`` stands for a dot."""
    return {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(ca),
        "sasl.mechanism": mechanism,
        "sasl.username": "anna",
        "sasl.password": PASSWORD,
        **{name.replace("_", "."): value for name, value in settings.items()},
    }


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
async def test_events_are_published_and_read_over_tls_by_a_user(broker, ca, mechanism):
    """By the client's own settings, which the source and the publisher pass on."""
    config = config_of(ca, mechanism)
    topic = await asyncio.to_thread(KafkaTopic, broker, f"of-{mechanism}", 1, security=config)
    await asyncio.to_thread(topic.publish, 0, *numbered(0, 20))
    fleet = Fleet(topic)
    async with KafkaPublisher(
        broker.bootstrap_servers, topic=topic.name, config=config
    ) as publisher:
        await publisher.publish(
            [OutgoingEvent(body=body, partition_id="0") for body in numbered(20, 40)],
            patience=SOON,
        )
    async with fleet.processor("a", source=topic.source(config=config)):
        await fleet.until(40)

    assert [event.body for event in fleet.events] == numbered(0, 40)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sasl_password": "wr0ng"}, "Authentication failed"),
        ({"sasl_password": "wr0ng", "mechanism": "SCRAM-SHA-512"}, "invalid credentials"),
        ({"mechanism": "SCRAM-SHA-256"}, "SCRAM-SHA-256"),
        ({"ssl_ca_location": "other.pem"}, "certificate verify failed"),
        ({"sasl_username": "bob"}, "TOPIC_AUTHORIZATION_FAILED"),
    ],
    ids=["password", "scram", "mechanism", "ca", "right"],
)
async def test_what_the_broker_refuses_is_a_wrong_setting_at_once(broker, ca, changes, words):
    """Before the connect time-out; the message says why, and has no password."""
    if "ssl_ca_location" in changes:
        changes = {"ssl_ca_location": str(ca.with_name("other.pem"))}
    config = config_of(ca, **changes)
    topic = "refused"
    source = KafkaEventSource(broker.bootstrap_servers, topic=topic, config=config)
    async with source, asyncio.timeout(10):
        with pytest.raises(ConfigurationError, match=words) as by_source:
            await source.check_consumer_group("g")
    async with asyncio.timeout(10):
        with pytest.raises(ConfigurationError, match=words) as by_publisher:
            await KafkaPublisher(broker.bootstrap_servers, topic=topic, config=config).open()

    for caught in (by_source, by_publisher):
        assert PASSWORD not in str(caught.value)
        assert "wr0ng" not in str(caught.value)


async def test_a_client_without_tls_is_told_where_to_look(broker, ca):
    """The broker only closes its connections, and the client gives no reason."""
    config = config_of(ca, security_protocol="SASL_PLAINTEXT")
    source = KafkaEventSource(broker.bootstrap_servers, topic="refused", config=config)
    async with source, asyncio.timeout(10):
        with pytest.raises(SourceUnavailableError, match=r"another security\.protocol"):
            await source.check_consumer_group("g")
