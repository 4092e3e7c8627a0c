"""Where rows are published to, as values that can be sent to executors."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Annotated

from eventproc._base.identity import Network
from eventproc._base.settings import SECRET, check_settings
from eventproc.errors import ConfigurationError
from eventproc.ports import EventPublisher
from eventproc.sources._connection_string import check_namespace
from eventproc.sources.eventhubs import EventHubPublisher
from spark_integration._recipes import HubRecipe, at_hub, load, refuse_key_and_identity
from spark_integration._secrets import Secret

Publisher = AbstractAsyncContextManager[EventPublisher]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHubTarget:
    """An event hub, by its connection string or with an identity."""

    connection: Annotated[Secret | None, SECRET] = None
    namespace: str | None = None
    """The namespace's host, reached with the identity of the process that publishes."""

    eventhub_name: str | None = None
    hub: HubRecipe = field(default_factory=HubRecipe)

    def __post_init__(self) -> None:
        """Check that the fields name one hub, with either a key or an identity."""
        check_settings(self)
        refuse_key_and_identity(self.connection, self.namespace)
        if self.connection is None and self.namespace is None:
            raise ConfigurationError(
                "publish to which event hub? Give the option connectionString (env:NAME, "
                "file:PATH, or the string itself), or fullyQualifiedNamespace to use an identity"
            )
        if self.namespace is not None and not self.eventhub_name:
            raise ConfigurationError("fullyQualifiedNamespace needs the option eventHubName, too")
        if self.namespace is not None:
            check_namespace(self.namespace)

    def make(self) -> Publisher:
        """Make a publisher, without connecting it.

        Raises:
            ConfigurationError: this machine does not have the secret, or it is invalid.
            MissingExtraError: azure-identity is not installed on this machine.
        """
        return at_hub(
            EventHubPublisher,
            self.connection,
            self.namespace,
            self.eventhub_name,
            self.hub.make(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTarget:
    """A Kafka topic, with settings of the client. Any of them may be a secret."""

    bootstrap_servers: str | None
    """Not needed with ``namespace``."""

    topic: str
    namespace: str | None = None
    """A namespace of Event Hubs, to use its Kafka endpoint with the identity of the process."""

    ca_bundle: str | None = None
    """A file with the certificates to trust, with ``namespace``."""

    settings: tuple[tuple[str, Secret], ...] = field(default=(), repr=False)

    def make(self) -> Publisher:
        """Make a publisher, without connecting it.

        Raises:
            ConfigurationError: a setting is refused, or this machine does not have a secret.
            MissingExtraError: a package that it needs is not installed on this machine.
        """
        from eventproc.sources.kafka import KafkaPublisher  # noqa: PLC0415 - it is an extra

        settings = {name: value.read() for name, value in self.settings}
        if self.namespace is not None:
            bundle = self.ca_bundle
            return KafkaPublisher.with_identity(
                self.namespace,
                self.topic,
                Network(ca_bundle=bundle).credential(),
                bootstrap_servers=self.bootstrap_servers,
                config={"ssl.ca.location": bundle, **settings} if bundle else settings,
            )
        assert self.bootstrap_servers is not None, "the parser requires it"
        return KafkaPublisher(self.bootstrap_servers, topic=self.topic, config=settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTarget:
    """A target whose publisher a function makes."""

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
