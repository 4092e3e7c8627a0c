"""Metrics of several workers, joined as Prometheus expects it."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from eventproc._command.workers.gathering import merged


def metrics_of(number):
    """Return a registry with a metric of each kind, and one that only this worker has."""
    registry = CollectorRegistry()
    Counter("handled", "Events.", ["partition"], registry=registry).labels('3 "x"}').inc(number)
    Gauge("lag", "How far {behind}.", registry=registry).set(number)
    Histogram("calls", "Seconds.", buckets=[1, 2], registry=registry).observe(number)
    Gauge(f"own_{number}", "Of one worker.", registry=registry).set(1)
    return registry


def samples(text):
    """Return all samples that Prometheus finds: name, labels and value."""
    return [
        (sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


def test_each_sample_gets_the_number_of_its_worker():
    """Nothing is lost and nothing else changes, as Prometheus' own parser reads it."""
    texts = {number: generate_latest(metrics_of(number)).decode() for number in (0, 1, 12)}
    expected = [
        (name, labels | {"worker": str(number)}, value)
        for number, text in texts.items()
        for name, labels, value in samples(text)
    ]
    found = samples(merged(texts))

    assert len(found) == len(expected)
    assert all(sample in found for sample in expected)


def test_the_lines_of_a_metric_are_together_under_one_description():
    """The format demands it."""
    texts = {number: generate_latest(metrics_of(number)).decode() for number in (0, 1)}
    lines = merged(texts).splitlines()
    described = [line.split()[2] for line in lines if line.startswith("# TYPE")]

    assert len(described) == len(set(described))
    at = lines.index("# TYPE lag gauge")
    assert lines[at + 1 : at + 3] == ['lag{worker="0"} 0.0', 'lag{worker="1"} 1.0']


def test_openmetrics_has_one_end():
    """It is the last line."""
    texts = {number: generate_openmetrics(metrics_of(number)).decode() for number in (0, 1)}
    text = merged(texts)

    assert text.count("# EOF") == 1
    assert text.endswith("# EOF\n")


def test_metrics_without_descriptions_are_joined_as_well():
    """A sample without labels, with an empty set of them, and with a time."""
    texts = {0: "# TYPE a gauge\na 3\nup 1\n\nold{} 2 170\n", 1: "up 0\n# a remark\na 4\n"}

    assert merged(texts).splitlines() == [
        "# TYPE a gauge",
        'a{worker="0"} 3',
        'a{worker="1"} 4',
        'up{worker="0"} 1',
        'up{worker="1"} 0',
        'old{worker="0"} 2 170',
    ]
