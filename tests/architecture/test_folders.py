"""The tree stays readable: few files in each folder, and unit tests where their module stands."""

from collections import Counter
from pathlib import PurePosixPath

MODULES_MAX = {"eventproc": 14, "spark_integration": 11}
"""Files in the root of a package: what its users name."""

FOLDER_FILES_MAX = 16


def folder_of(file):
    """Return the folder in which a file lies."""
    return PurePosixPath(file.name).parent.as_posix()


def test_no_folder_holds_more_than_a_reader_keeps_in_mind(shipped):
    """A folder that grows beyond it is two."""
    counts = Counter(folder_of(file) for file in shipped)
    crowded = {
        folder: count
        for folder, count in counts.items()
        if count > MODULES_MAX.get(folder, FOLDER_FILES_MAX)
    }

    assert crowded == {}


def test_every_unit_test_stands_where_its_module_does(root, tests):
    """``tests/unit/a/test_b.py`` tests ``a/b.py``; what tells of several modules is a story."""
    homeless = [
        file.name
        for file in tests
        if file.name.startswith("tests/unit/")
        if not any((root / place).exists() for place in places_of(file))
    ]

    assert homeless == []


def places_of(file):
    """Return where the file may be that a test file tests: parts of benchmarks begin with ``_``."""
    folder = folder_of(file).removeprefix("tests/unit/")
    module = PurePosixPath(file.name).name.removeprefix("test_")
    return [f"{folder}/{module}", f"{folder}/_{module}"]


def test_privacy_has_one_spelling(shipped):
    """What users may import is said in ``docs/``; no module marks itself with an underscore."""
    underscored = [
        file.name
        for file in shipped
        if (stem := PurePosixPath(file.name).stem).startswith("_") and not stem.startswith("__")
    ]

    assert underscored == []
