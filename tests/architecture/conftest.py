"""Fixtures for checks of the source: every file, parsed once."""

import ast
import gc
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("eventproc", "checkpointstores", "spark_integration")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One Python file of the project."""

    name: str
    text: str = field(repr=False)
    tree: ast.Module = field(repr=False)


@cache
def parsed(path: Path) -> SourceFile:
    """Read and parse a file, once in a process."""
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT).as_posix()
    return SourceFile(name=name, text=text, tree=ast.parse(text, name))


def read(*folders: str) -> list[SourceFile]:
    """Parse every Python file below *folders*."""
    files = [parsed(path) for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    # The trees are many objects. Frozen, they do not slow down later garbage collections.
    gc.collect()
    gc.freeze()
    return files


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def shipped() -> list[SourceFile]:
    """Return every file of the packages that users install."""
    return read(*PACKAGES)


@pytest.fixture(scope="session")
def everything() -> list[SourceFile]:
    """Return every Python file of the project."""
    return read(*PACKAGES, "bootstrap", "benchmarks", "examples", "tests")


@pytest.fixture(scope="session")
def tests() -> list[SourceFile]:
    """Return every file that contains tests."""
    return [file for file in read("tests") if "/test_" in file.name]
