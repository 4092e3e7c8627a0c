"""Examples are tests: every Python block in README, docs and docstrings runs.

To keep one from running, put ``<!-- skip: next -->`` above it and say in the text why.
"""

from doctest import ELLIPSIS, NORMALIZE_WHITESPACE

from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser
from sybil.parsers.rest import PythonCodeBlockParser as DocstringCodeBlockParser
from sybil.parsers.rest import SkipParser as DocstringSkipParser

_prose = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "docs/**/*.md"],
)
_docstrings = Sybil(
    parsers=[
        DocTestParser(optionflags=ELLIPSIS | NORMALIZE_WHITESPACE),
        DocstringCodeBlockParser(),
        DocstringSkipParser(),
    ],
    patterns=[
        f"{package}/**/*.py" for package in ("eventproc", "checkpointstores", "spark_integration")
    ],
    document_types={".py": PythonDocStringDocument},
)

pytest_collect_file = (_prose + _docstrings).pytest()
