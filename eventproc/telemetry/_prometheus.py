"""Metrics of OpenTelemetry and of prometheus_client, in the text format of Prometheus."""

from collections.abc import Iterator
from typing import Any, Final

from opentelemetry import metrics

from eventproc._base.extras import needing
from eventproc.errors import ConfigurationError

with needing("http"):
    from opentelemetry.exporter.prometheus import PrometheusMetricReader
    from opentelemetry.sdk.metrics import MeterProvider
    from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST


class PrometheusText(Collector):
    """Reads what a meter provider of OpenTelemetry has, and prometheus_client's own registry."""

    def __init__(self, meter_provider: Any) -> None:  # noqa: ANN401 - of any implementation
        """Read from *meter_provider*; ``None``: from the global one, which is set if there is none.

        Raises:
            ConfigurationError: the provider is not that of OpenTelemetry's SDK.
        """
        provider = meter_provider or metrics.get_meter_provider()
        if meter_provider is None and not isinstance(provider, MeterProvider):
            metrics.set_meter_provider(MeterProvider())
            provider = metrics.get_meter_provider()
        if not isinstance(provider, MeterProvider):
            raise ConfigurationError(
                f"the meter provider is a {type(provider).__name__}, whose metrics cannot be read: "
                "use the one of opentelemetry-sdk"
            )
        self._provider = provider
        self._registry = CollectorRegistry()
        self._reader = PrometheusMetricReader(registry=self._registry)
        provider.add_metric_reader(self._reader)

    def close(self) -> None:
        """Stop reading from the meter provider."""
        self._provider.remove_metric_reader(self._reader)

    def text(self) -> str:
        """Return every metric now."""
        return generate_latest(self).decode()

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families of both; the meter provider's if both have one of a name."""
        names = set()
        for family in self._registry.collect():
            names.add(family.name)
            yield family
        yield from (family for family in REGISTRY.collect() if family.name not in names)
