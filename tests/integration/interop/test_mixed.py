"""A group of processors of every SDK, and the ledger that judges it."""

from random import Random

import pytest

from tests.integration.emulator.foreign_clients import command_of

from .members import JAVASCRIPT
from .mixed import mixed


@pytest.mark.long
@pytest.mark.timeout(500)
def test_processors_of_every_sdk_share_a_group_through_faults():
    """Nothing is lost, no repeat is unexplained, shares are even in the end, and nothing moves."""
    for sdk in ("java", "go"):
        command_of(sdk)
    if not (JAVASCRIPT / "node_modules").exists():
        pytest.skip("needs `npm ci` in tests/integration/emulator/javascript")

    assert mixed(120, Random(2), print) == []
