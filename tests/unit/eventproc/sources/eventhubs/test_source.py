"""How the source asks for many partitions, and what it keeps of its receivers."""

import weakref

from azure.core.credentials import AzureNamedKeyCredential

from eventproc.models import EventPosition
from eventproc.sources.eventhubs import EventHubSource


class CountingPath:
    """Answers without a hub, and counts how many partitions each request asks for."""

    def __init__(self):
        self.counts = []

    async def ask_partitions(self, client, partition_ids):
        """Return the ids."""
        self.counts.append(len(partition_ids))
        return list(partition_ids)


class SourceOverPath(EventHubSource):
    """A source whose requests go to such a path."""

    def __init__(self, path):
        super().__init__("h.servicebus.windows.net", "hub", AzureNamedKeyCredential("n", "k"))
        self._counting = path

    async def _with_path(self, use):
        return await use(self._counting)


async def test_the_time_limit_of_a_request_is_not_one_for_all_partitions_of_a_large_hub():
    """They are asked for one after the other, each a round trip."""
    path, ids = CountingPath(), [str(number) for number in range(70)]
    async with SourceOverPath(path) as source:
        found: object = await source.properties_of(ids)

    assert found == ids
    assert path.counts == [32, 32, 6]


class FakeReceiver:
    """A receiver whose link may be over."""

    def __init__(self):
        self.is_over = False

    async def close(self):
        """Nothing is open."""
        self.is_over = True


class ReceiverPath:
    """Opens receivers without a hub."""

    needs_own_client = False

    async def open_receiver(self, client, group, partition_id, position):
        """Return a new receiver."""
        return FakeReceiver()


async def test_a_receiver_that_is_over_is_forgotten_when_the_next_one_is_opened():
    """Partitions move and links break for months, and nobody closes the source meanwhile."""

    async def opened():
        return await source.open_receiver("$Default", "0", EventPosition.earliest())

    async with SourceOverPath(ReceiverPath()) as source:
        former, present = await opened(), await opened()
        await former.close()
        known = weakref.WeakSet([former, present])
        del former, present
        newest = await opened()

        assert len(known) == 1

    assert newest.is_over
    assert all(receiver.is_over for receiver in known)
