"""Real processes that hold names: a server with a fence accepts nothing from a former holder."""

from random import Random

import pytest

from tests.integration.resources.bounds import Bounds
from tests.integration.resources.findings import find
from tests.integration.resources.storm import Storm

EVENTS = 13
"""Of each of the two groups: 26 together."""


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sqlite", "azurite"])
def test_no_message_is_accepted_from_a_former_holder(kind, request, tmp_path):
    """Whoever joins, leaves, is killed or frozen; and no name is closed for too long."""
    store = str(tmp_path / "store.db")
    if kind == "azurite":
        connection, container = map(request.getfixturevalue, ("storage", "container"))
        store = f"{container} {connection}"
    storm = Storm(tmp_path, store, Random(f"7 {kind}"))
    storm.play(EVENTS)
    bounds = Bounds(kind == "azurite")
    found = find(storm.fence.messages, storm.processes, bounds, storm.settled_s)

    assert found.violations == []
    assert found.late(bounds) == []
    assert found.accepted_count > 0
    assert found.refused, "a holder was frozen and woke up, so the fence had something to refuse"
    assert len(found.changes) >= EVENTS
