"""How the source asks for many partitions."""

from azure.core.credentials import AzureNamedKeyCredential

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
