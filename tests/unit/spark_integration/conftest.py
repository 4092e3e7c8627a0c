"""Leaves out the tests of what the installed PySpark does not have yet."""

from importlib.metadata import PackageNotFoundError, version

try:
    PUSHES_FILTERS = tuple(map(int, version("pyspark").split(".")[:2])) >= (4, 1)
except PackageNotFoundError:
    PUSHES_FILTERS = True  # its tests are skipped, with the reason

collect_ignore = [] if PUSHES_FILTERS else ["_source/test_filters.py"]
