"""Storms: processes are killed, frozen and replaced, and the store or the hub has outages."""

import random

import pytest

from tests.integration.delivery.environment import (
    AzuriteStore,
    PostgresStore,
    SqliteStore,
    Store,
    TablesStore,
)
from tests.integration.delivery.hub import EmulatorHub, Hub, KafkaHub
from tests.integration.delivery.storm import storm


def violations(hub: Hub, store: Store, place, *, seconds: float) -> list[str]:
    """Return what a storm violates; how it went is printed."""
    return storm(hub, store, place, seconds=seconds, rng=random.Random(3), say=print)


def test_a_short_storm_on_sqlite_has_no_violations(tmp_path):
    """Processes of the command are killed, frozen and replaced, and their wall clocks are off."""
    assert violations(EmulatorHub(), SqliteStore(tmp_path), tmp_path, seconds=12) == []


@pytest.mark.long
@pytest.mark.parametrize("kind", [AzuriteStore, PostgresStore, TablesStore])
def test_a_short_storm_on_a_server_has_no_violations(tmp_path, kind):
    """The same, while the server is frozen and stopped or killed."""
    assert violations(EmulatorHub(), kind(tmp_path), tmp_path, seconds=30) == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seconds", [40, pytest.param(120, marks=pytest.mark.night)])
def test_a_storm_on_kafka_has_no_violations(tmp_path, seconds):
    """The broker is frozen, or killed and started again, and the store is locked."""
    assert violations(KafkaHub(), SqliteStore(tmp_path), tmp_path, seconds=seconds) == []
