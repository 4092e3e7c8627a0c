"""The configuration for Docker is valid for both emulators."""

import json

from eventproc.emulator._hub.configuration import read_config_json

OFFICIAL_PARTITIONS_MAX = 32
OFFICIAL_ENTITIES_MAX = 10


def test_one_configuration_serves_both_emulators(root):
    """The file is within the limits of the official emulator, and this project's emulator reads
    it."""
    path = root / "docker/Config.json"
    (namespace,) = json.loads(path.read_text("utf-8"))["UserConfig"]["NamespaceConfig"]
    official = {entity["Name"]: entity["PartitionCount"] for entity in namespace["Entities"]}
    ours = {hub.name: str(hub.partition_count) for hub in read_config_json(path)}

    assert (namespace["Name"], namespace["Type"]) == ("emulatorNs1", "EventHub")
    assert len(official) <= OFFICIAL_ENTITIES_MAX
    assert all(1 <= int(count) <= OFFICIAL_PARTITIONS_MAX for count in official.values())
    assert ours == official


def test_docker_compose_mounts_the_configuration(root):
    """The path in ``docker-compose.yml`` is that of the file; else the emulator uses its own
    hubs."""
    composition = (root / "docker-compose.yml").read_text("utf-8")

    assert "./docker/Config.json:/Eventhubs_Emulator/ConfigFiles/Config.json" in composition
