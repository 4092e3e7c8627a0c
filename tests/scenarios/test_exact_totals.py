"""The example of exact totals counts each order once, also if it was published twice."""

import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from tests.unit.eventproc._core.events import event

TOTALS = runpy.run_path(str(Path(__file__).parents[2] / "examples/exact_totals.py"))


async def test_totals_count_each_message_id_once():
    """In one call or in two; orders without an id are never taken for the same."""
    partition = SimpleNamespace(partition_id="0", state=None)
    orders = [("a", b"5"), ("b", b"7"), ("a", b"5"), (None, b"1"), (None, b"1"), ("b", b"7")]
    published = [replace(event(n), message_id=key, body=b) for n, (key, b) in enumerate(orders)]
    for batch in (published[:4], published[4:]):
        await TOTALS["ExactTotals"]().process_events(partition, batch)
    state = TOTALS["STATE"].load(partition)

    assert (state.count, state.cents) == (4, 14)
