"""The Grafana dashboard uses the metrics and labels that Prometheus gets.

Grafana does not take part: queries are parsed by a PromQL parser and compared with what the real
exporter serves for real processors, and panels with the requirements of Grafana's schema.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import promql_parser
import pytest
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from eventproc.telemetry import Telemetry
from eventproc.telemetry._instruments import INSTRUMENTS, PARTITION_GAUGES
from eventproc.testing import run_virtual
from tests.scenarios.group_setup import Noting, Setup, seconds
from tests.scenarios.resource_setup import ResourceSetup

DASHBOARD = Path(__file__).parents[2] / "dashboards/eventproc.json"
VARIABLES = {"$__rate_interval": "5m", "$eventhub": "hub", "$group": ".*"}
ADDED_BY_PROMETHEUS = {"instance"}
WIDTH = 24


@pytest.fixture(name="dashboard", scope="module")
def _dashboard():
    return json.loads(DASHBOARD.read_text("utf-8"))


@pytest.fixture(name="panels", scope="module")
def _panels(dashboard):
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


@pytest.fixture(name="served", scope="module")
def _served():
    """Return the labels of each sample that Prometheus would get, after every kind of failure."""
    registry = CollectorRegistry()
    reader = PrometheusMetricReader(registry=registry)
    setup = Setup(partition_count=2)
    setup.telemetry = Telemetry(meter_provider=MeterProvider([reader]))

    class Failing(Noting):
        has_failed = False

        async def process_events(self, context, events):
            await super().process_events(context, events)
            if not Failing.has_failed:
                Failing.has_failed = True
                raise RuntimeError("once")

    async def scenario():
        setup.publish(3)
        async with setup.processor(lambda: Failing(setup), shutdown_timeout=timedelta(seconds=1)):
            await seconds(30)
            setup.publish(1, "0")
            with setup.store_by_owner["a"].outage():
                await seconds(15)
            async with ResourceSetup("a").processor("a", telemetry=setup.telemetry):
                await seconds(15)
                return generate_latest(registry).decode()

    labels: defaultdict[str, set[str]] = defaultdict(set)
    for family in text_string_to_metric_families(run_virtual(scenario())):
        for sample in family.samples:
            labels[sample.name] |= set(sample.labels)
    return labels


def queries(panels) -> Iterator[tuple[str, promql_parser.Expr]]:
    """Yield each query of the panels, parsed, with the panel's title."""
    for panel in panels:
        for target in panel["targets"]:
            text = target["expr"]
            for name, value in VARIABLES.items():
                text = text.replace(name, value)
            yield panel["title"], promql_parser.parse(text)


def parts(expression) -> Iterator[object]:
    """Yield an expression and all its parts."""
    yield expression
    match expression:
        case promql_parser.AggregateExpr():
            yield from parts(expression.expr)
        case promql_parser.BinaryExpr():
            yield from parts(expression.lhs)
            yield from parts(expression.rhs)
        case promql_parser.Call():
            for argument in expression.args:
                yield from parts(argument)
        case promql_parser.MatrixSelector():
            yield from parts(expression.vector_selector)
        case promql_parser.ParenExpr():
            yield from parts(expression.expr)
        case promql_parser.VectorSelector() | promql_parser.NumberLiteral():
            return
        case _:
            raise NotImplementedError(expression)


def selectors(expression):
    """Return the metrics that an expression reads."""
    found = [p for p in parts(expression) if isinstance(p, promql_parser.VectorSelector)]
    return [selector for selector in found if selector.name]


def test_every_query_uses_an_existing_metric_and_labels(panels, served):
    """With the names that the exporter gives them."""
    missing = []
    for title, expression in queries(panels):
        for selector in selectors(expression):
            asked = {matcher.name for matcher in selector.matchers.matchers}
            missing += [(title, selector.name)] if selector.name not in served else []
            missing += [(title, label) for label in asked - served[selector.name]]

    assert missing == []


def test_the_alerts_of_the_page_use_existing_metrics(served):
    """A name that does not exist never fires."""
    page = (DASHBOARD.parents[1] / "docs/metrics.md").read_text("utf-8")
    alerts = re.findall(r"^\| `((?:max|min|sum)\(.*?)`", page, re.MULTILINE)
    names = [s.name for alert in alerts for s in selectors(promql_parser.parse(alert))]

    assert len(names) == len(alerts) > 5
    assert [name for name in names if name not in served] == []


def test_groupings_and_legends_use_labels_of_the_metric(panels, served):
    """A legend may only use labels that the query groups by."""
    wrong = []
    for panel in panels:
        for target, (_, expression) in zip(panel["targets"], queries([panel]), strict=True):
            known = set().union(*(served[s.name] for s in selectors(expression)))
            grouped = {
                label
                for part in parts(expression)
                if isinstance(part, promql_parser.AggregateExpr) and part.modifier
                for label in part.modifier.labels
            }
            legend = {piece.split("}}")[0] for piece in target["legendFormat"].split("{{")[1:]}
            wrong += [(panel["title"], x) for x in grouped - known - ADDED_BY_PROMETHEUS]
            wrong += [(panel["title"], x) for x in legend - grouped]

    assert wrong == []


def test_every_metric_is_in_a_panel(panels, served):
    """Otherwise nobody would see it."""
    shown = {s.name for _, expression in queries(panels) for s in selectors(expression)}
    names = [
        instrument.name
        for table in (*(t for k in INSTRUMENTS for t in (k.counts, k.gauges)), PARTITION_GAUGES)
        for instrument in table
    ]
    durations = {name.rsplit("_", 1)[0] for name in served if name.endswith("_bucket")}
    unseen = [
        name
        for name in [*(name.replace(".", "_") for name in names), *durations]
        if not any(one.startswith(name) for one in shown)
    ]

    assert unseen == []
    assert len(durations) == 3


def test_the_variables_use_existing_labels(dashboard, served):
    """Hub and group are chosen from labels, and the data source from those of Prometheus."""
    first, *others = dashboard["templating"]["list"]

    assert (first["type"], first["query"], first["name"]) == (
        "datasource",
        "prometheus",
        "datasource",
    )
    for variable in others:
        inside = variable["query"]["query"].removeprefix("label_values(").removesuffix(")")
        metric, label = inside.rsplit(", ", 1)
        assert label in served[metric.split("{")[0]]


def test_panels_do_not_overlap(dashboard):
    """Each has an id of its own, and they fill the width."""
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (column, line)
            for column in range(place["x"], place["x"] + place["w"])
            for line in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= WIDTH
        taken |= cells
    ids = [panel["id"] for panel in dashboard["panels"]]

    assert len(set(ids)) == len(ids)
    assert len(taken) == WIDTH * (max(line for _, line in taken) + 1)


def test_panels_have_the_fields_that_grafana_requires(panels):
    """A description, a unit, the chosen data source, and a letter for each query."""
    for panel in panels:
        assert panel["type"] in {"stat", "timeseries"}
        assert panel["description"]
        assert panel["fieldConfig"]["defaults"]["unit"] in {"short", "s", "cps"}
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == sorted(set(letters))
        sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
        assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)
