"""Examples are tests: every Python block in README, docs and docstrings runs.

To keep one from running, put ``<!-- skip: next -->`` above it and say in the text why.
"""

import os
import sys
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from pathlib import Path

from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser
from sybil.parsers.rest import PythonCodeBlockParser as DocstringCodeBlockParser
from sybil.parsers.rest import SkipParser as DocstringSkipParser
from sybil.sybil import SybilCollection

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
