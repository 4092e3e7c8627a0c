"""A RabbitMQ broker for all tests that only need one: ``conftest.scope_of`` runs them in one
process, because a broker takes ten seconds to start."""

from collections.abc import Iterator

import pytest

from eventproc.errors import ConfigurationError
from eventproc.testing.servers.rabbitmq_broker import RabbitMqBroker, find_rabbitmq


@pytest.fixture(scope="session", name="has_rabbitmq")
def _has_rabbitmq() -> None:
    """Skip the tests of RabbitMQ where it cannot be had."""
    try:
        find_rabbitmq()
    except ConfigurationError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def rabbitmq(has_rabbitmq: None) -> Iterator[RabbitMqBroker]:
    """Yield one broker; a test declares queues and streams with names of its own."""
    with RabbitMqBroker() as broker:
        yield broker
