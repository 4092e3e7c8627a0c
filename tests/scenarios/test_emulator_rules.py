"""Partition keys, receivers, addresses and configuration: rules that need no connection."""

import json
import struct
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from azure.eventhub._buffered_producer._partition_resolver import (
    PartitionResolver,
    generate_hash_code,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventproc.emulator import EmulatorConfiguration, HubConfiguration, hubs_of, read_config_json
from eventproc.emulator._amqp.refusal import RefusedError
from eventproc.emulator._hub.configuration import PARTITIONS_MAX
from eventproc.emulator._hub.hub import RECEIVERS_MAX, displaced_by, partition_of
from eventproc.emulator._links.interfaces import Address, parse_address
from eventproc.errors import ConfigurationError

ascii_keys = st.text(st.characters(min_codepoint=1, max_codepoint=127), min_size=1, max_size=60)


@given(st.lists(ascii_keys), st.integers(1, 100))
def test_a_key_has_the_partition_that_azures_client_computes(keys, partition_count):
    """The buffering client computes the service's choice itself, as the emulator does.

    For negative hashes the Python client's remainder differs from that of the .NET, Java and
    JavaScript clients; those three agree with the service, and so does the emulator.
    """
    keys = [key for key in keys if generate_hash_code(key) >= 0]
    resolver = PartitionResolver([str(index) for index in range(partition_count)])

    ours = [partition_of(key, partition_count) for key in keys]

    assert ours == [int(resolver.get_partition_id_by_partition_key(key)) for key in keys]


@given(ascii_keys)
def test_the_hash_of_a_key_equals_that_of_azures_client(key):
    """In 16 bits: with 65,536 partitions the remainder is the magnitude of the hash itself."""
    assert partition_of(key, 65_536) == abs(generate_hash_code(key))


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=50), st.integers(1, 50))
def test_every_key_has_a_partition(key, partition_count):
    """Any text, including the empty one, and always the same partition."""
    assert 0 <= partition_of(key, partition_count) < partition_count


@dataclass(frozen=True)
class FakeReceiver:
    """As much of a receiver as the rules read."""

    epoch: int | None = None
    receiver_name: str = "nil"


@given(st.lists(st.none() | st.integers(0, 3), max_size=30))
def test_receivers_displace_each_other_by_their_epochs(arrivals):
    """One with an epoch yields only to an equal or higher one; without epochs there may be five."""
    present: list[FakeReceiver] = []
    for epoch in arrivals:
        newcomer = FakeReceiver(epoch)
        epochs = [reader.epoch for reader in present if reader.epoch is not None]
        stays_out = (bool(epochs) and (epoch is None or max(epochs) > epoch)) or (
            epoch is None and len(present) == RECEIVERS_MAX
        )
        if stays_out:
            with pytest.raises(RefusedError, match=r"epoch|Exceeded"):
                displaced_by(newcomer, present)
            continue

        displaced = displaced_by(newcomer, present)

        assert displaced == ([] if epoch is None else present)
        present = [newcomer] if epoch is not None else [*present, newcomer]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("orders", Address("orders", "orders")),
        ("amqps://127.0.0.1:5672/orders", Address("orders", "orders")),
        ("orders/Partitions/3", Address("orders/Partitions/3", "orders", None, "3")),
        (
            "sb://host/orders/consumergroups/$Default/partitions/3",
            Address("orders/consumergroups/$Default/partitions/3", "orders", "$Default", "3"),
        ),
        ("$cbs", Address("$cbs", "$cbs")),
        ("amqp://host/orders/$management", Address("orders/$management", "$management")),
    ],
)
def test_addresses_are_parsed_in_every_form_of_clients(address, expected):
    """With or without scheme and host, and in any case."""
    assert parse_address(address) == expected


@pytest.mark.parametrize("address", ["", None, 5, "a/b", "a/b/c/d", "a/ConsumerGroups/b/c/0"])
def test_an_unknown_address_is_answered_like_a_missing_hub(address):
    """As by the service."""
    with pytest.raises(RefusedError) as refused:
        parse_address(address)

    assert refused.value.condition == "amqp:not-found"


def config_json(folder: Path, document: object) -> Path:
    """Write a ``Config.json``."""
    path = folder / "Config.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def document_of(*entities):
    """A document like the official emulator's with these entities."""
    namespace = {"Type": "EventHub", "Name": "emulatorNs1", "Entities": list(entities)}
    return {"UserConfig": {"NamespaceConfig": [namespace], "LoggingConfig": {"Type": "File"}}}


def test_the_official_emulators_config_json_is_parsed(tmp_path):
    """Partition counts are strings there; numbers are accepted, too."""
    path = config_json(
        tmp_path,
        document_of(
            {"Name": "eh1", "PartitionCount": "2", "ConsumerGroups": [{"Name": "cg1"}]},
            {"Name": "eh2", "PartitionCount": 8, "ConsumerGroups": []},
        ),
    )

    assert read_config_json(path) == (
        HubConfiguration("eh1", 2, ("cg1",)),
        HubConfiguration("eh2", 8),
    )


def test_the_config_json_of_this_repository_is_parsed():
    """The one that its compose file gives to the official emulator."""
    paths = list(Path("docker").rglob("Config.json"))

    assert [read_config_json(path)[0].partition_count > 0 for path in paths] == [True] * len(paths)


@pytest.mark.parametrize(
    ("document", "expected_message"),
    [
        ("{", "is not JSON"),
        ({}, "UserConfig"),
        ([], "UserConfig"),
        (document_of({"PartitionCount": "2"}), "Name"),
        (document_of({"Name": "eh1", "PartitionCount": "two"}), "PartitionCount"),
        (document_of({"Name": "eh1", "PartitionCount": "0"}), "between 1 and"),
        (document_of({"Name": "a/b", "PartitionCount": "1"}), "not a name"),
        (document_of({"Name": None}), "Name is None"),
        (document_of({"Name": "eh1", "PartitionCount": 2.5}), "PartitionCount is 2.5"),
        (document_of({"Name": "eh1", "PartitionCount": True}), "PartitionCount is True"),
        (
            document_of({"Name": "eh1", "PartitionCount": float("inf")}),
            "Infinity is not a finite number",
        ),
        (document_of({"Name": "eh1", "PartitionCount": "9" * 5_000}), "whole number from 1"),
        (document_of({"Name": "eh1", "PartitionCout": 32}), "'PartitionCount' is missing"),
        (
            document_of({"Name": "e", "PartitionCount": 1, "ConsumerGroups": [{"Name": ""}]}),
            "consumer group",
        ),
        (
            document_of({"Name": "e", "PartitionCount": 1, "ConsumerGroups": [{"Name": 7}]}),
            "Name is 7",
        ),
        ("[" * 40_000, "nested more than 100 deep"),
    ],
)
def test_an_invalid_config_json_is_refused(tmp_path, document, expected_message):
    """The message names the field or the file."""
    path = config_json(tmp_path, document)

    with pytest.raises(ConfigurationError, match=expected_message):
        read_config_json(path)


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
any_entity = st.fixed_dictionaries(
    {},
    optional={
        "Name": any_json,
        "PartitionCount": any_json,
        "ConsumerGroups": any_json | st.lists(st.fixed_dictionaries({"Name": any_json})),
    },
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=any_json | st.lists(any_entity | any_json).map(lambda all_: document_of(*all_)))
def test_any_config_json_is_parsed_or_raises_configuration_error(tmp_path, document):
    """Whatever values it has."""
    path = config_json(tmp_path, document)
    try:
        hubs = read_config_json(path)
    except ConfigurationError:
        return

    assert all(1 <= hub.partition_count <= PARTITIONS_MAX for hub in hubs)


def test_a_config_json_that_does_not_exist_is_refused(tmp_path):
    """The message has its path."""
    with pytest.raises(ConfigurationError, match="nowhere"):
        read_config_json(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("given_", "expected_message"),
    [
        ({"hubs": ()}, "at least one"),
        ({"hubs": hubs_of({"a": 1, "A": 1})}, "twice"),
        ({"hubs": hubs_of({"a": 1}), "sync_to_disk": True}, "directory"),
        ({"hubs": hubs_of({"a": 1}), "idle_timeout": timedelta(0)}, "idle_timeout"),
    ],
)
def test_contradictory_settings_are_refused(given_, expected_message):
    """Before a port is opened."""
    with pytest.raises(ConfigurationError, match=expected_message):
        EmulatorConfiguration(**given_)


def test_the_hash_is_folded_to_a_signed_number():
    """One example with its numbers."""
    folded = struct.unpack(">h", struct.pack(">H", generate_hash_code("order-17") & 0xFFFF))[0]

    assert partition_of("order-17", 1_000_000) == abs(folded)
