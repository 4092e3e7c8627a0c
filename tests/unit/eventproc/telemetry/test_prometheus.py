"""``PrometheusText``: the metrics of a provider beside those of the program, each once."""

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import REGISTRY

from eventproc.telemetry._prometheus import PrometheusText

TYPE = "# TYPE orders_total counter"


def test_a_metric_that_the_program_exports_as_well_appears_once():
    """A program may have set up an exporter of its own, which uses the common registry."""
    own = PrometheusMetricReader()
    provider = MeterProvider([own])
    text = PrometheusText(provider)
    provider.get_meter("orders").create_counter("orders").add(2)
    try:
        shown = text.text()
    finally:
        text.close()
        provider.shutdown()

    assert shown.count(TYPE) == 1
    assert [line[-3:] for line in shown.splitlines() if line.startswith("orders_total{")] == ["2.0"]


def test_nothing_of_the_provider_is_read_after_the_end():
    """A provider outlives servers, and must not keep a reader of each."""
    provider = MeterProvider()
    text = PrometheusText(provider)
    provider.get_meter("orders").create_counter("orders").add(2)
    before = text.text()
    text.close()

    assert TYPE in before
    assert TYPE not in text.text()
    assert not any(family.name == "orders" for family in REGISTRY.collect())
    provider.shutdown()
