"""Where a partition begins again, if the program has stored no checkpoint."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from eventproc.emulator import EventHubsEmulator
from tests.integration.compat.aio_programs import Receiving
from tests.integration.compat.sides import Place


@pytest.mark.integration
@pytest.mark.parametrize("position", ["-1", 0, datetime.now(UTC) - timedelta(hours=1)])
def test_after_an_error_a_call_begins_again_where_it_began(position: Any):
    """What it handled before was not stored, so a program with a buffer has lost it."""

    async def run(place: Place) -> list[int]:
        receiving = Receiving(place.aio_client(), fails_at={2: 1}).begin(
            starting_position=position, starting_position_inclusive=True
        )
        await receiving.until(lambda: receiving.numbers()[-1:] == [1])
        await asyncio.to_thread(place.publish, ["c", "d"])
        await receiving.until(lambda: 3 in receiving.numbers())
        await receiving.end()
        return receiving.numbers()

    with EventHubsEmulator({"hub": 1}) as emulator:
        place = Place("eventproc", emulator, "hub", "")
        place.publish(["a", "b"])

        assert asyncio.run(run(place)) == [0, 1, 2, 0, 1, 2, 3]
