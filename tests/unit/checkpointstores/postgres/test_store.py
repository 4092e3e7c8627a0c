"""The PostgreSQL store before it is opened."""

import pytest

from checkpointstores.postgres import PostgresCheckpointStore
from eventproc.errors import StoreError
from eventproc.models import ConsumerGroup

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")


async def test_a_store_that_is_not_open_says_how_to_open_it():
    """``RuntimeError``, and not one that would be retried."""
    store = PostgresCheckpointStore("postgresql://user@host/database")
    with pytest.raises(RuntimeError, match="use `async with store`") as caught:
        await store.list_members(GROUP)

    assert not isinstance(caught.value, StoreError)
