"""Fixtures for checks of the source: every file, parsed once."""

import ast
import gc
from dataclasses import dataclass, field
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


def parsed(path: Path) -> SourceFile:
    """Read and parse a file."""
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT).as_posix()
    return SourceFile(name=name, text=text, tree=ast.parse(text, name))


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def shipped() -> list[SourceFile]:
    """Return every file of the packages that users install."""
    files = [parsed(path) for folder in PACKAGES for path in sorted((ROOT / folder).rglob("*.py"))]
    # The trees are many objects. Frozen, they do not slow down later garbage collections.
    gc.freeze()
    return files
