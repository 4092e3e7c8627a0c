"""Tells when the hub of the rows was created, so that a checkpoint of a former hub is noticed.

Rule: the hub is asked only before rows would be left out as handled, and once in a task, so a batch
without such rows costs no connection.
"""

from datetime import datetime, timedelta
from typing import Final

from eventproc._base.logs import get_logger
from eventproc.errors import ConfigurationError, SourceError
from eventproc.models import Checkpoint, ReceivedEvent
from eventproc.sources.eventhubs import EventHubSource
from spark_integration._positions import refuse_former_hub
from spark_integration._sink.options import SinkOptions

CLOCKS_DIFFER_MAX: Final = timedelta(seconds=5)
"""By how much the clocks of hub and store may differ, with the whole seconds of a blob's time."""


class HubAge:
    """The age of one hub, for the partitions of a task."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._is_asked = False
        self._created_at: datetime | None = None

    async def refuse_former(self, checkpoint: Checkpoint, covered: ReceivedEvent) -> None:
        """Check that a checkpoint is of the hub that has an event which it seems to cover.

        If the hub cannot be asked, only the event's time tells: no checkpoint covers an event that
        was enqueued after it was written.

        Raises:
            HubRecreatedError: the hub was deleted and created again since the checkpoint.
        """
        refuse_former_hub(checkpoint, covered.enqueued_time - CLOCKS_DIFFER_MAX)
        refuse_former_hub(checkpoint, await self._asked())

    async def _asked(self) -> datetime | None:
        group = self._options.group
        if group.connection is not None and not self._is_asked:
            self._is_asked = True
            try:
                async with EventHubSource.from_connection_string(
                    group.connection.read(),
                    eventhub_name=group.eventhub_name,
                    options=self._options.hub.make(),
                ) as source:
                    await source.partition_ids()
                    self._created_at = source.created_at
            except (ConfigurationError, SourceError) as error:
                log = get_logger("eventproc.spark", consumer_group=group.consumer_group)
                log.warning("hub_age_unknown", error=str(error))
        return self._created_at
