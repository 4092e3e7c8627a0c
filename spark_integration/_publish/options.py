"""The options of the publishing sink, parsed and checked. Pure.

Options for a Kafka topic are named like those of Spark's own Kafka sink.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from eventproc._base.settings import PositiveSpan, check_settings
from eventproc.errors import ConfigurationError
from spark_integration._option_names import naming_options
from spark_integration._options import HUB_OPTIONS, SPARKS_OWN, OptionReader, parse_hub
from spark_integration._publish.properties import PropertyValues
from spark_integration._publish.targets import EventHubTarget, FunctionTarget, KafkaTarget, Target
from spark_integration._secrets import Secret

PUBLISH_OPTIONS: Final = (
    *HUB_OPTIONS,
    *("publish", "topic", "propertyValues", "operationTimeout"),
)
"""Every option of the publishing sink but those with the prefix ``kafka.``."""

KAFKA_PREFIX: Final = "kafka."
SERVERS: Final = "bootstrap.servers"

_OF_THE_OTHER_SINK: Final = {
    "handler": "and publish exclude each other: a sink hands rows to a handler or publishes them",
}
_KINDS: Final = "eventhub, kafka or module:function"
_OPTIONS_BY_KIND: Final[Mapping[str, frozenset[str]]] = {
    "eventhub": frozenset(HUB_OPTIONS),
    "kafka": frozenset({"topic", "kafka.", "fullyQualifiedNamespace", "caBundle"}),
    "function": frozenset(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishOptions:
    """The checked options. They can be pickled, and printing them shows no secret."""

    target: Target
    property_values: PropertyValues = PropertyValues.JSON
    patience: PositiveSpan = timedelta(minutes=5)
    """How long to repeat a request that is not acknowledged, before a task fails."""

    def __post_init__(self) -> None:
        """Check the types."""
        check_settings(self)


def is_publishing(options: Mapping[str, str]) -> bool:
    """Whether these options are those of the publishing sink."""
    return any(name.lower().removeprefix("eventhubs.") == "publish" for name in options)


@naming_options()
def parse_publish_options(options: Mapping[str, str]) -> PublishOptions:
    """Read and check the options of a sink with ``publish``.

    Raises:
        ConfigurationError: an option is unknown, missing, invalid, or has no effect.
    """
    kafka, others = {}, {}
    for name in options:
        if name.lower().startswith(KAFKA_PREFIX):
            kafka[name.lower().removeprefix(KAFKA_PREFIX)] = options[name]
        elif name.lower() not in SPARKS_OWN:
            others[name] = options[name]
    for name, reason in _OF_THE_OTHER_SINK.items():
        if name.lower() in {other.lower().removeprefix("eventhubs.") for other in others}:
            raise ConfigurationError(f"{name} {reason}")
    given = OptionReader(others, known=PUBLISH_OPTIONS, part="sink with publish")
    return PublishOptions(
        target=_target(given, kafka),
        property_values=given.one_of(
            "propertyValues", PropertyValues, otherwise=PropertyValues.JSON
        ),
        patience=given.span("operationTimeout", otherwise=timedelta(minutes=5)),
    )


def _target(given: OptionReader, kafka: Mapping[str, str]) -> Target:
    text = (given.text("publish") or "").strip()
    kind = "function" if ":" in text else text.lower()
    if kind not in _OPTIONS_BY_KIND or kind == text == "function":
        raise ConfigurationError(f"publish is {text!r}: give {_KINDS}")
    present = {name for names in _OPTIONS_BY_KIND.values() for name in names if given.text(name)}
    if kafka:
        present.add(KAFKA_PREFIX)
    if useless := sorted(present - _OPTIONS_BY_KIND[kind]):
        name = f"kafka.{min(kafka)}" if useless[0] == KAFKA_PREFIX else useless[0]
        raise ConfigurationError(f"{name} has no effect beside publish={text}: remove it")
    if kind == "function":
        return FunctionTarget(function=text)
    return _hub(given) if kind == "eventhub" else _topic(given, kafka)


def _hub(given: OptionReader) -> EventHubTarget:
    return EventHubTarget(
        connection=given.secret("connectionString"),
        namespace=given.text("fullyQualifiedNamespace"),
        eventhub_name=given.text("eventHubName"),
        hub=parse_hub(given),
    )


def _topic(given: OptionReader, kafka: Mapping[str, str]) -> KafkaTarget:
    servers, topic = kafka.get(SERVERS), given.text("topic")
    namespace, bundle = given.text("fullyQualifiedNamespace"), given.text("caBundle")
    if (servers is None and namespace is None) or topic is None:
        raise ConfigurationError(
            "publish to which topic? Give the options kafka.bootstrap.servers and topic; for Event "
            "Hubs with an identity, fullyQualifiedNamespace and topic"
        )
    if bundle is not None and namespace is None:
        raise ConfigurationError(
            "caBundle has no effect beside publish=kafka without fullyQualifiedNamespace: give "
            "kafka.ssl.ca.location"
        )
    settings = {name: Secret(value) for name, value in kafka.items() if name != SERVERS}
    return KafkaTarget(
        bootstrap_servers=servers,
        topic=topic,
        namespace=namespace,
        ca_bundle=bundle,
        settings=tuple(sorted(settings.items(), key=_name)),
    )


def _name(setting: tuple[str, Secret]) -> str:
    return setting[0]
