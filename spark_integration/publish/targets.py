"""Where rows are published to, as values that can be sent to executors."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Annotated

from eventproc.ports import EventPublisher
from eventproc.settings import SECRET, check_settings
from eventproc.sources.eventhubs import EventHubPublisher
from spark_integration.recipes import load
from spark_integration.secrets import Secret

Publisher = AbstractAsyncContextManager[EventPublisher]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHubTarget:
    """An event hub, by its connection string."""

    connection: Annotated[Secret, SECRET]
    eventhub_name: str | None = None

    def __post_init__(self) -> None:
        """Check the types."""
        check_settings(self)

    def make(self) -> Publisher:
        """Make a publisher, without connecting it.

        Raises:
            ConfigurationError: this machine does not have the secret, or it is invalid.
        """
        return EventHubPublisher.from_connection_string(
            self.connection.read(), eventhub_name=self.eventhub_name
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTarget:
    """A Kafka topic, with settings of the client. Any of them may be a secret."""

    bootstrap_servers: str
    topic: str
    settings: tuple[tuple[str, Secret], ...] = field(default=(), repr=False)

    def make(self) -> Publisher:
        """Make a publisher, without connecting it.

        Raises:
            ConfigurationError: a setting is refused, or this machine does not have a secret.
        """
        from eventproc.sources.kafka import KafkaPublisher  # noqa: PLC0415 - it is an extra

        settings = {name: value.read() for name, value in self.settings}
        return KafkaPublisher(self.bootstrap_servers, topic=self.topic, config=settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTarget:
    """Whatever a function publishes to."""

    function: str
    """``module:function``, importable on the executors. It takes no argument and returns an
    ``EventPublisher``, or any async context manager that yields an open one."""

    def make(self) -> Publisher:
        """Call the function.

        Raises:
            ConfigurationError: it does not exist on this machine.
        """
        return load("publish", self.function)()  # type: ignore[no-any-return]


Target = EventHubTarget | KafkaTarget | FunctionTarget
