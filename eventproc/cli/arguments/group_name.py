"""The group that a command works on: by the hub's connection string, or by its names."""

from eventproc.cli.arguments.sources import HUB_VARIABLE
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup
from eventproc.ports import EventSource


def group_of(
    source: EventSource | None, namespace: str, eventhub: str, consumer_group: str
) -> ConsumerGroup:
    """Return the group; without a source, by the given namespace and event hub.

    Raises:
        ConfigurationError: There is no source, and namespace or event hub is missing.
    """
    if source is not None:
        return ConsumerGroup(
            fully_qualified_namespace=source.fully_qualified_namespace,
            eventhub_name=source.eventhub_name,
            name=consumer_group,
        )
    if not namespace:
        raise ConfigurationError(
            "which Event Hubs namespace? Give --namespace, or set the environment variable "
            f"{HUB_VARIABLE} to its connection string, which also shows the lag"
        )
    if not eventhub:
        raise ConfigurationError("which event hub? Give --eventhub")
    return ConsumerGroup(
        fully_qualified_namespace=namespace, eventhub_name=eventhub, name=consumer_group
    )
