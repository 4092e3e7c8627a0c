"""The ledger of a rehearsal: requests that a receiver carries out, or takes for repetitions."""

from typing import Any

from eventproc.testing import Ledger
from tests.unit.eventproc.testing._rehearsal.stage import Stage


def test_each_receiver_knows_its_own_repetitions():
    """An event may be reserved and charged under one name."""
    stage = Stage()
    for name in ("reserve", "charge", "reserve"):
        request: Any = Ledger(
            f"shop:{name}", key=lambda order, **_: order, idempotent_by="name"
        ).bind(stage, "host-1", print)
        request("order 7", name="0-7")

    assert stage.effects == ["reserve: 'order 7'", "charge: 'order 7'"]
