"""A checkpoint that was deleted from the store: only the owner may create it again."""

import pytest

from eventproc import OwnershipLostError
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.scene import Scene
from tests.unit.eventproc._delivery.checkpoint_fixture import former_and_next, write


def test_a_deleted_checkpoint_is_not_created_again_by_a_former_owner():
    """Ownership is verified first, as if another processor had written it."""

    async def story():
        scene = Scene()
        fixture, former, _ = await former_and_next(scene)
        del scene.account.records(scene.group).checkpoint_by_partition["0"]
        fixture.owner = "b"
        with pytest.raises(OwnershipLostError):
            await write(former, 9)
        return scene.checkpoint()

    assert run_virtual(story()) is None
