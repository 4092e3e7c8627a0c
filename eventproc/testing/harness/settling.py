"""Decides when a harness is settled: when every event is handled or dead-lettered."""

from collections.abc import Sequence

from eventproc.testing.harness.owner import Owner
from eventproc.testing.harness.record import Record
from eventproc.testing.harness.view import HarnessView


def undone(view: HarnessView, record: Record, alive: Sequence[Owner]) -> list[str]:
    """Return a text for each call and partition that is not settled; none if all are settled.

    A partition is settled when the owner in its record has an open handler for it, and has
    handled every event of the hub or given it up.
    """
    positions: dict[str, int | None] = {}
    stopped: set[str] = set()
    for owner in alive:
        statistics = owner.processor.statistics()
        stopped |= set(statistics.stopped)
        for pump in statistics.pumps:
            is_open = (owner.owner_id, pump.partition_id) in record.serving
            if is_open and view.owner_of(pump.partition_id) == owner.owner_id:
                positions[pump.partition_id] = pump.sequence_number
    living = {owner.owner_id for owner in alive}
    left = [
        f"call {call.number} is under way"
        for call in record.calls
        if not call.is_over and call.owner_id in living
    ]
    for partition_id in view.hub.partition_ids():
        end = view.hub.partition_properties(partition_id).last_enqueued_sequence_number
        position = positions.get(partition_id)
        if partition_id in stopped:
            left.append(f"the failure policy stopped partition {partition_id!r}")
        elif partition_id not in positions:
            left.append(f"its owner does not serve partition {partition_id!r}")
        elif position is None and view.due(partition_id):
            left.append(f"partition {partition_id!r}: none of its events is handled")
        elif position is not None and position < end:
            left.append(f"partition {partition_id!r} is handled up to {position} of {end}")
    return left
