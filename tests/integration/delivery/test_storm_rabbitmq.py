"""A short storm on streams of RabbitMQ, whose broker is killed or stopped as well."""

import random

import pytest

from tests.integration.delivery.environment import SqliteStore
from tests.integration.delivery.hubs import StreamHub
from tests.integration.delivery.storm import storm


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_short_storm_on_streams_has_no_violations(has_rabbitmq, tmp_path):
    """Nothing is lost, and the state of each partition counts every event once."""
    progress: list[str] = []
    found = storm(
        SqliteStore(tmp_path),
        StreamHub(tmp_path),
        tmp_path,
        seconds=20,
        rng=random.Random(2),
        say=progress.append,
    )

    assert found == [], progress
    assert "'restart'" in progress[-1]
