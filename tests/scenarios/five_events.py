"""Five events of three keys, served for a minute: for scenarios of user code that fails oddly."""

from collections.abc import Callable
from typing import Any

import pytest

from eventproc import FailureAction, FailurePolicy
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import Setup, seconds

LETTER = FailurePolicy(attempts_max=2, action=FailureAction.DEAD_LETTER)
BOTH = pytest.mark.parametrize("lanes", [1, 3])


def served(make: Callable[[Setup], Any], *, lanes: int = 1, **settings: Any):
    """Serve five events; return the setup, the handlers that were made, and the statistics."""

    async def scenario():
        setup, made = Setup(), []
        for number in range(5):
            setup.hub.publish(b"x", partition_id="0", partition_key=f"k{number % 3}")

        def make_one():
            made.append(make(setup))
            return made[-1]

        async with setup.processor(make_one, key_concurrency=lanes, **settings) as processor:
            await seconds(60)
            statistics = processor.statistics()
        return setup, made, statistics

    return run_virtual(scenario())
