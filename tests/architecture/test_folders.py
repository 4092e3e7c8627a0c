"""The tree stays readable: few files in each folder, and each unit test beside its module's
path."""

from collections import Counter
from pathlib import PurePosixPath

MODULES_MAX = {"eventproc": 15, "spark_integration": 11}
"""Files in the root of a package: what its users name."""

FOLDER_FILES_MAX = 16


def folder_of(file):
    """Return the folder in which a file lies."""
    return PurePosixPath(file.name).parent.as_posix()


def test_no_folder_has_too_many_files(shipped):
    """A folder that grows beyond its limit has to be divided."""
    counts = Counter(folder_of(file) for file in shipped)
    crowded = {
        folder: count
        for folder, count in counts.items()
        if count > MODULES_MAX.get(folder, FOLDER_FILES_MAX)
    }

    assert crowded == {}


def test_every_unit_test_has_the_path_of_its_module(root, tests):
    """``tests/unit/a/test_b.py`` tests ``a/b.py``; tests of several modules are in
    ``tests/stories``."""
    misplaced = [
        file.name
        for file in tests
        if file.name.startswith("tests/unit/")
        if not any((root / place).exists() for place in places_of(file))
    ]

    assert misplaced == []


def places_of(file):
    """Return where the tested file may be: internal modules of benchmarks begin with ``_``."""
    folder = folder_of(file).removeprefix("tests/unit/")
    module = PurePosixPath(file.name).name.removeprefix("test_")
    return [f"{folder}/{module}", f"{folder}/_{module}"]


def test_no_module_name_begins_with_an_underscore(shipped):
    """What users may import is written in ``docs/``, not in the names of modules."""
    underscored = [
        file.name
        for file in shipped
        if (stem := PurePosixPath(file.name).stem).startswith("_") and not stem.startswith("__")
    ]

    assert underscored == []
