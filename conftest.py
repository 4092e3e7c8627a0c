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
_java = Path(__file__).parent / ".tools/java"
if _java.exists():
    os.environ.setdefault("JAVA_HOME", str(_java))

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
SPARK_TIMEOUT_S = 900
"""Interrupting a call to Java breaks the connection to it, for all tests that follow; so nobody is
interrupted for being slow on a machine that is busy."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give all that needs Spark its time."""
    for item in items:
        if item.nodeid.startswith(NEEDS_SPARK):
            item.add_marker(pytest.mark.timeout(SPARK_TIMEOUT_S))


class OneSpark(LoadGroupScheduling):  # type: ignore[misc]  # it is not typed
    """Sends all that needs Spark to one process, where its session is, and each document to one.

    Tests of whole clusters, too: beside another Spark they starve the tests of fleets on two cores.

    By the names of tests: marks for it (``xdist_group``) are written into them by pytest-xdist 3.8
    in a way that pytest 9.2 does not look at.
    """

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(NEEDS_SPARK):
            return "spark"
        document, _, place = nodeid.partition("::")
        if place.startswith("line:"):  # The blocks of a document build on each other.
            return document
        return str(super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadGroupScheduling | None:
    """Take the scheduler above instead of its parent."""
    return OneSpark(config, log) if config.getoption("dist") == "loadgroup" else None
