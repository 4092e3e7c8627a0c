"""An open store in a forked child."""

import os

from eventproc.models import ConsumerGroup
from tests.scenarios.forks import refusals

GROUP = ConsumerGroup(fully_qualified_namespace="a.servicebus.windows.net", eventhub_name="orders")


async def test_an_open_store_refuses_every_call_in_a_child(store_kind):
    """Its connections are the parent's; a store that is not open can be opened in the child."""
    async with store_kind() as kind:
        store, unopened = kind.make_store(), kind.make_store()
        async with store:
            refused = refusals(
                {
                    "open": store.open,
                    "list": lambda: store.list_ownership(GROUP),
                    "claim": lambda: store.claim_ownership(GROUP, []),
                    "close": store.close,
                    "unopened": unopened.close,
                }
            )

    assert refused.pop("unopened") == "nothing"
    assert len(refused) == 4
    assert all(f"was opened in process {os.getpid()}" in text for text in refused.values())
