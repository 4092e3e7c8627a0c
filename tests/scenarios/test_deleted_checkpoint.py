"""A checkpoint that was deleted from the store: only the owner may create it again."""

import pytest

from eventproc import OwnershipLostError
from tests.scenarios.group_setup import Setup
from tests.unit.eventproc._delivery.checkpoint_fixture import former_and_next, write


async def test_a_deleted_checkpoint_is_not_created_again_by_a_former_owner():
    """Ownership is verified first, as if another processor had written it."""
    setup = Setup()
    fixture, former, _ = await former_and_next(setup)
    del setup.account.records(setup.group).checkpoint_by_partition["0"]
    fixture.owner = "b"
    with pytest.raises(OwnershipLostError):
        await write(former, 9)

    assert setup.checkpoint() is None
