"""An operator moves the checkpoint of a partition that Azure's own processor holds."""

from datetime import timedelta

import pytest

from checkpointstores.blob import BlobCheckpointStore
from eventproc import LoadBalancingStrategy
from eventproc.emulator import EventHubsEmulator
from eventproc.models import ConsumerGroup
from eventproc.operator import Move, move_checkpoint
from tests.integration.interop.test_azure_processor import (
    EVENTS_PER_PARTITION,
    EXPIRATION_S,
    Azures,
    Scene,
    publish,
    published,
    until,
)


@pytest.mark.timeout(60)
async def test_azures_processor_begins_where_the_operator_says(storage, container):
    """Touching its record is enough: it lets go, takes the partition again, and begins there."""
    with EventHubsEmulator({"cooperative": 2}) as emulator:
        scene = Scene(emulator, storage, container, LoadBalancingStrategy.COOPERATIVE)
        azures = Azures(scene)
        group = ConsumerGroup(
            fully_qualified_namespace=f"127.0.0.1:{emulator.port}", eventhub_name=scene.hub
        )
        async with (
            azures.running(),
            BlobCheckpointStore.from_connection_string(storage, container) as store,
        ):
            await publish(scene)
            await until(lambda: set(azures.handled) == published(scene), "Azure's handles all")
            sixth = emulator.events(scene.hub, "0")[5]
            moved = await move_checkpoint(
                store,
                group,
                Move(
                    partition_id="0",
                    offset=str(sixth.offset),
                    sequence_number=sixth.sequence_number,
                ),
                token="t",
                expiration=timedelta(seconds=EXPIRATION_S),
            )
            last = ("0", EVENTS_PER_PARTITION - 1)
            await until(lambda: azures.handled[last] == 2, "Azure's handles again from there")

    again = {event for event, count in azures.handled.items() if count > 1}

    assert moved.told_owner_id is not None
    assert again == {("0", number) for number in range(6, EVENTS_PER_PARTITION)}
