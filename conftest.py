"""Run every Python block of README and docs as a test; order and distribute tests.

To keep one from running, put ``<!-- skip: next -->`` above it and say in the text why.
"""

import gc
import os
import re
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.sybil import SybilCollection
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling

from eventproc.errors import ConfigurationError

# Spark starts Java and more Python processes; these variables say which ones. (Make exports
# JAVA_HOME only to programs that it starts after it has fetched Java.)
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
_tools = Path(__file__).parent / ".tools"
for _name, _home in (
    ("JAVA_HOME", _tools / "java"),
    ("SPARK_HOME", Path(sys.prefix, "spark")),  # of an older version, in its own environment
    ("SPARK_HOME", _tools / "spark"),
):
    if _home.exists():
        os.environ.setdefault(_name, str(_home))

OF_SPARK = ("pyspark", "py4j", "pandas")
FETCHED_BY_MAKE = re.compile("`make [a-z]+`")
"""Errors about a server that is not installed name the target that fetches it."""

SKIPS_FAIL = os.environ.get("EVENTPROC_TEST_SKIPS") == "fail"

_sources = [
    Sybil(parsers=[PythonCodeBlockParser(), SkipParser()], path=folder, patterns=[pattern])
    for folder, pattern in ((".", "README.md"), ("docs", "*.md"))
]

pytest_collect_file = SybilCollection(_sources).pytest()

NEEDS_SPARK = ("tests/spark/", "docs/spark")
STARTS_CLUSTERS = (
    "tests/spark/test_connect.py",
    "tests/spark/test_executor_killed.py",
    "tests/spark/test_fleet_standalone.py",
    "tests/spark/test_kills.py",
    "tests/spark/test_pipelines.py",
    "tests/spark/test_standalone.py",
)
LONG = (
    *STARTS_CLUSTERS,
    "docs/rehearse.md",
    "docs/spark-fleet.md",
    "docs/spark-publish.md",
    "tests/integration/cli/test_credentials.py",
    "tests/scenarios/test_by_load.py",
    "tests/integration/delivery/test_storm.py",
    "tests/integration/demo/",
    "tests/integration/transactions/test_storm.py",
    "tests/spark/test_sink_moves.py",
)
"""Tests of whole clusters, outages and long scenarios: ``make test-long`` runs them."""

WITH_REAL_PARTS = (
    "tests/contract/test_foreign_answers.py",
    "tests/contract/test_pauses.py",
    "tests/contract/test_postgres_outages.py",
    "tests/contract/test_silent_servers.py",
    "tests/contract/test_sqlite_processes.py",
    "tests/contract/test_store_contract.py",
    "tests/integration/",
    "tests/spark/",
)
"""Tests that start servers, processes and clients of others.

Of each file ``make test`` runs the first test, the first case of each real part, what is marked
``smoke``, and all cases of what is quick. The others get the marker ``more``: ``make test-long``.
"""

REAL_PARTS = frozenset({"blob", "go", "hub", "java", "kafka", "postgres", "rabbitmq", "tables"})
QUICK_PARTS = frozenset({"capture", "direct", "faultless", "memory", "sqlite"})
SLOW_PARTS = frozenset({"public"})  # ``test_receive_paths.py`` reads with it once.
"""Words in the names of cases."""

WITH_MANY_CASES = (
    "tests/scenarios/test_deploys.py",
    "tests/scenarios/test_recorded_cycles.py",
    "tests/scenarios/test_rehearsals.py::test_a_",
    "tests/scenarios/test_simulated_",
    "tests/simulation/test_known.py::test_drawn_stories",
    "tests/unit/eventproc/_core/scaling/test_decision.py::test_ten_times_the_load",
    "tests/unit/eventproc/testing/_placement_contract/",
)
"""Tests of whole groups, up to a second each: of each test ``make test`` runs the first case."""

QUICK = (
    "tests/integration/cli/test_import.py",
    "tests/integration/cli/test_pauses.py",
    "tests/integration/cli/test_refusals.py",
    "tests/integration/cli/test_status.py",
    "tests/integration/cli/test_unknown_groups.py",
    "tests/integration/cli/test_verify.py",
    "tests/integration/emulator/test_control.py",
    "tests/integration/emulator/test_faults.py",
    "tests/integration/emulator/test_protocol.py",
    "tests/integration/emulator/test_stop.py",
    "tests/integration/emulator/test_unusual_clients.py",
    "tests/integration/emulator/test_websocket.py",
    "tests/integration/interop/test_mixed.py",
    "tests/integration/kubernetes/",
    "tests/integration/positions/test_blob_layouts.py",
    "tests/integration/positions/test_export.py",
    "tests/integration/rabbitmq_pods/",
    "tests/integration/sources/test_rabbitmq",
    "tests/integration/spark_integration/test_filters.py",
    "tests/integration/spark_integration/test_stream_reader.py",
    "tests/integration/stores/",
    "tests/spark/test_columns.py",
)
"""Files that ``make test`` runs whole: a test takes some hundredths of a second."""

SECOND_COMBINATIONS = (
    "tests/integration/dead_letters/test_killed_replays.py",
    "tests/integration/positions/test_pairs.py",
    "tests/integration/sources/test_geo_replication.py",
    "tests/integration/sources/test_renamed_internals.py",
    "tests/integration/test_missing_parts.py",
    "tests/spark/test_capture.py",
    "tests/spark/test_checkpoints.py",
    "tests/spark/test_examples.py",
    "tests/spark/test_filters.py",
    "tests/spark/test_fleet_example.py",
    "tests/spark/test_positions.py",
    "tests/spark/test_watermark.py",
)
"""Files of which ``make test`` runs nothing: other tests touch the promise and each part once."""

NEEDS_RABBITMQ = re.compile(r"tests/integration/.*rabbitmq")
"""Tests that share one broker, which takes ten seconds to start."""

NEEDS_KAFKA = re.compile(r"tests/integration/.*kafka")
"""Tests that share one broker, which takes two seconds of both cores to start."""

READS_EVERY_FILE = "tests/architecture/"
"""Tests that read the whole project: one process parses it, once."""

RUNS_ALL_AT_ONCE = "tests/integration/compat/test_pairs.py"
"""Pairs of programs that mostly wait: one process runs them at the same time."""

RUNS_BESIDE_OTHERS = ("tests/simulation/", "tests/scenarios/", "tests/unit/")
"""Tests that a busy machine does not disturb: most of them run on virtual time."""

QUICK_FILES = ("tests/scenarios/", "tests/unit/")
"""Files of quick tests: one process runs a file, because to begin one takes longer than a test."""

SPARK_TIMEOUT_S = 900
"""A longer timeout than usual, because to interrupt a call to Java breaks the connection to it for
all tests that follow."""


def scope_of(nodeid: str) -> str:
    """Return the scope of a test. Tests of one scope run in one process; most have their own scope.

    The scope depends on the test's name, because marks (``xdist_group``) have no effect with
    pytest-xdist 3.8 and pytest 9.2.
    """
    document, _, place = nodeid.partition("::")
    if document in {*STARTS_CLUSTERS, RUNS_ALL_AT_ONCE}:
        return document
    if nodeid.startswith(NEEDS_SPARK):
        return "spark"
    if NEEDS_RABBITMQ.match(nodeid):
        return "rabbitmq"
    if NEEDS_KAFKA.match(nodeid):
        return "kafka"
    if nodeid.startswith(READS_EVERY_FILE):
        return "architecture"
    builds_on = place.startswith("line:")  # Blocks of a page build on each other.
    are_quick = nodeid.startswith(QUICK_FILES) and not nodeid.startswith((*WITH_MANY_CASES, *LONG))
    return document if builds_on or are_quick else nodeid


def turn_of(item: pytest.Item) -> int:
    """Return the turn of a test: the longest scope first, clusters apart from other Spark.

    On two cores, a second Spark starves the processes that tests of fleets start.
    """
    scope = scope_of(item.nodeid)
    if scope == "spark":
        return 0
    if scope in STARTS_CLUSTERS:
        return 2
    return 3 if scope.startswith(RUNS_BESIDE_OTHERS) else 1


def mark_more(items: list[pytest.Item]) -> None:
    """Mark what ``make test`` leaves out, because it runs another test of the same promise."""
    tried = set()
    for item in items:
        test, _, case = item.nodeid.partition("[")
        document = test.partition("::")[0]
        words = {*case.rstrip("]").split("-")}
        if any(map(item.get_closest_marker, ("long", "night", "smoke"))):
            continue
        if test.startswith(WITH_MANY_CASES):
            promise: tuple[str, ...] = (test,)
        elif document.startswith(WITH_REAL_PARTS) and not document.startswith(QUICK):
            promise = (document, *sorted(words & REAL_PARTS))
            if words & QUICK_PARTS:
                continue
        else:
            continue
        if promise in tried or words & SLOW_PARTS or document.startswith(SECOND_COMBINATIONS):
            item.add_marker(pytest.mark.more)
        else:
            tried.add(promise)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exempt what is collected from garbage collection: it stays until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the tests by turn, and give tests of Spark a longer timeout.

    Tests of ``make night`` are left out unless ``-m`` names them.
    """
    if "night" not in config.option.markexpr:
        of_night = [item for item in items if item.get_closest_marker("night")]
        config.hook.pytest_deselected(items=of_night)
        items[:] = [item for item in items if item not in of_night]
    items.sort(key=turn_of)
    for item in items:
        if item.nodeid.startswith(NEEDS_SPARK):
            item.add_marker(pytest.mark.timeout(SPARK_TIMEOUT_S))
        if item.nodeid.startswith(LONG):
            item.add_marker(pytest.mark.long)
    mark_more(items)


class InScopes(LoadGroupScheduling):  # type: ignore[misc]  # it is not typed
    """Sends all tests of one scope to one process."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def missing_part(error: BaseException | None) -> str | None:
    """Return why a test cannot run here, if it needs a part that make has not fetched yet."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith(OF_SPARK):
            return "Spark is not installed: `make spark`"
        if isinstance(error, ConfigurationError) and FETCHED_BY_MAKE.search(str(error)):
            return str(error)
        error = error.__cause__
    return None


Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def judged(report: Report, call: pytest.CallInfo[Any] | None) -> Report:
    """Skip what needs a missing part; where nothing may be skipped, fail all that is skipped.

    Nothing may be skipped on a build server, say.
    """
    if SKIPS_FAIL:
        if report.skipped and not hasattr(report, "wasxfail"):
            report.outcome = "failed"
            report.longrepr = f"skipped, and EVENTPROC_TEST_SKIPS=fail: {report.longrepr}"
    elif report.failed and call is not None and call.excinfo is not None:
        reason = missing_part(call.excinfo.value)
        if reason is not None:
            report.outcome = "skipped"
            report.longrepr = (report.nodeid.partition("::")[0], 0, f"Skipped: {reason}")
    return report


SKIPPED_PAGES: Final[dict[str, str]] = {}
"""Why a block of a page was skipped: the blocks after it build on it."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a block of a page if one before it was skipped."""
    reason = SKIPPED_PAGES.get(item.nodeid.partition("::line:")[0])
    if reason is not None:
        pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Judge a test's report."""
    report = judged((yield), call)
    page, is_block, _ = report.nodeid.partition("::line:")
    if report.skipped and is_block and isinstance(report.longrepr, tuple):
        SKIPPED_PAGES[page] = report.longrepr[2].removeprefix("Skipped: ")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Judge the report on a module: its imports may need a part that is missing."""
    report = yield
    return judged(report, getattr(report, "call", None))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadGroupScheduling | None:
    """Use the scheduler above for ``--dist loadgroup``."""
    return InScopes(config, log) if config.getoption("dist") == "loadgroup" else None
