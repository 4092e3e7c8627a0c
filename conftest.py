"""Examples are tests: every Python block in README, docs and docstrings runs.

To keep one from running, put ``<!-- skip: next -->`` above it and say in the text why.
"""

import os
import sys
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser
from sybil.parsers.rest import PythonCodeBlockParser as DocstringCodeBlockParser
from sybil.parsers.rest import SkipParser as DocstringSkipParser
from sybil.sybil import SybilCollection
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling

# Spark starts Java and more Pythons: these. (Make exports JAVA_HOME only to what it starts after
# it has fetched Java.)
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
_tools = Path(__file__).parent / ".tools"
for _name, _home in (("JAVA_HOME", _tools / "java"), ("SPARK_HOME", _tools / "spark")):
    if _home.exists():
        os.environ.setdefault(_name, str(_home))

_doctest = DocTestParser(optionflags=ELLIPSIS | NORMALIZE_WHITESPACE)

_sources = [
    Sybil(
        parsers=[PythonCodeBlockParser(), SkipParser()],
        path=folder,
        patterns=[pattern],
    )
    for folder, pattern in ((".", "README.md"), ("docs", "*.md"))
] + [
    Sybil(
        parsers=[_doctest, DocstringCodeBlockParser(), DocstringSkipParser()],
        path=package,
        patterns=["*.py"],
        document_types={".py": PythonDocStringDocument},
    )
    for package in ("eventproc", "checkpointstores", "spark_integration")
]

pytest_collect_file = SybilCollection(_sources).pytest()

NEEDS_SPARK = ("tests/spark/", "docs/spark.md")
STARTS_CLUSTERS = ("tests/spark/test_standalone.py", "tests/spark/test_fleet_standalone.py")
MINDS_NO_COMPANY = ("tests/simulation/", "tests/unit/")
"""On virtual time, most of them: a busy machine changes nothing but how long they take."""

SPARK_TIMEOUT_S = 900
"""Interrupting a call to Java breaks the connection to it, for all tests that follow; so nobody is
interrupted for being slow on a machine that is busy."""


def scope_of(nodeid: str) -> str:
    """Return with which other tests one has to share a process; most have nobody to share it with.

    By the names of tests: marks for it (``xdist_group``) are written into them by pytest-xdist 3.8
    in a way that pytest 9.2 does not look at.
    """
    document, _, place = nodeid.partition("::")
    if document in STARTS_CLUSTERS:
        return document
    if nodeid.startswith(NEEDS_SPARK):
        return "spark"
    return document if place.startswith("line:") else nodeid  # Its blocks build on each other.


def turn_of(item: pytest.Item) -> int:
    """Return how early a test is due: the longest row first, and no cluster beside a fleet.

    On two cores a second Spark starves the processes that tests of fleets start.
    """
    scope = scope_of(item.nodeid)
    if scope == "spark":
        return 0
    if scope in STARTS_CLUSTERS:
        return 2
    return 3 if scope.startswith(MINDS_NO_COMPANY) else 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put all in order, and give what needs Spark its time."""
    items.sort(key=turn_of)
    for item in items:
        if item.nodeid.startswith(NEEDS_SPARK):
            item.add_marker(pytest.mark.timeout(SPARK_TIMEOUT_S))


class InScopes(LoadGroupScheduling):  # type: ignore[misc]  # it is not typed
    """Sends all tests of a scope to one process."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadGroupScheduling | None:
    """Take the scheduler above instead of its parent."""
    return InScopes(config, log) if config.getoption("dist") == "loadgroup" else None
