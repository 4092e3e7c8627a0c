"""Tokens of Entra ID for the Kafka client."""

import time
from typing import NamedTuple

import pytest

from eventproc.errors import ConfigurationError
from eventproc.sources.kafka import KafkaEventSource, KafkaPublisher
from eventproc.sources.kafka._address import Tokens
from eventproc.sources.kafka._errors import NO_TOKEN, ClientError, TokenError, error_for

HOST = "contoso.servicebus.windows.net"


class Token(NamedTuple):
    token: str
    expires_on: int


class Credential:
    """Gives tokens of an hour, or fails while ``error`` is set."""

    def __init__(self):
        self.scopes = []
        self.error = None
        self.lifetime_s = 3600

    def get_token(self, *scopes, **_):
        self.scopes.append(scopes)
        if self.error is not None:
            raise self.error
        return Token("secret", int(time.time()) + self.lifetime_s)


def test_the_client_gets_a_token_for_the_namespace():
    """With the time of its expiry, which tells librdkafka when to ask again."""
    credential = Credential()
    tokens = Tokens(credential, HOST)
    token, expires_on = tokens("")

    assert token == "secret"
    assert time.time() + 3500 < expires_on < time.time() + 3700
    assert credential.scopes == [(f"https://{HOST}/.default",)]


def test_a_failure_is_kept_until_there_is_a_token():
    """The client reports only that something failed; ``reason`` says what."""
    credential = Credential()
    tokens = Tokens(credential, HOST)
    credential.error = OSError("identity is away")
    with pytest.raises(TokenError, match="identity is away"):
        tokens("")
    failed = tokens.reason
    credential.error = None
    tokens("")

    assert failed == "the credential gave no token: identity is away"
    assert tokens.reason == ""


async def test_a_check_raises_what_the_client_would_get():
    """So a source says at once why it cannot be read."""
    credential = Credential()
    credential.error = OSError("identity is away")
    with pytest.raises(TokenError, match="identity is away"):
        await Tokens(credential, HOST).check()


async def test_a_publisher_without_a_token_names_itself_and_the_reason():
    """It creates no client, whose constructor would wait ten seconds."""
    credential = Credential()
    credential.error = OSError("identity is away")
    with pytest.raises(ConfigurationError, match=r"'orders' at .* published to: .* is away$"):
        await KafkaPublisher.with_identity(HOST, "orders", credential).open()


async def test_a_source_without_a_token_names_itself_and_the_reason():
    """It creates no client, whose constructor would wait ten seconds."""
    credential = Credential()
    credential.error = OSError("identity is away")
    async with KafkaEventSource.with_identity(HOST, "orders", credential) as source:
        with pytest.raises(TokenError, match=r"'orders'.* cannot be read: .* identity is away"):
            await source.partition_ids()
        with pytest.raises(ConfigurationError, match=r"identity is away$"):
            await source.check_consumer_group("g")


def test_a_source_with_an_identity_keeps_the_names_of_the_one_with_a_key():
    """Records stay valid when a group changes from keys to an identity."""
    source = KafkaEventSource.with_identity(HOST, "orders", Credential())
    keyed = KafkaEventSource.from_connection_string(
        f"Endpoint=sb://{HOST}/;SharedAccessKeyName=a;SharedAccessKey=b", topic="orders"
    )

    assert repr(source) == repr(keyed) == f"KafkaEventSource('{HOST}:9093', 'orders')"
    assert source.fully_qualified_namespace == keyed.fully_qualified_namespace == HOST


@pytest.mark.parametrize("host", ["", f"{HOST}:9093", f"sb://{HOST}", f"https://{HOST}/"])
def test_a_namespace_is_a_host_name(host):
    """The message has the value and an example."""
    with pytest.raises(ConfigurationError, match=r"qualified_namespace is .* host name alone"):
        KafkaEventSource.with_identity(host, "orders", Credential())


def test_a_callback_for_tokens_of_ones_own_is_refused():
    """There is a credential for that."""
    for made in (KafkaEventSource, KafkaPublisher):
        with pytest.raises(ConfigurationError, match="oauth_cb"):
            made.with_identity(HOST, "orders", Credential(), config={"oauth_cb": lambda _: None})


def test_a_missing_token_ends_all_receivers_with_an_error_that_has_the_remedy():
    """They are opened again, with back-off."""
    error = error_for("the Kafka client", NO_TOKEN, "no credential was found")

    assert ClientError(NO_TOKEN, "").ends_all
    assert isinstance(error, TokenError)
    assert error.names_remedy
