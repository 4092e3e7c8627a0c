"""Which test files touch a module: those that import it, the nearest first."""

import ast
import heapq
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

PRODUCT: Final = ("eventproc", "checkpointstores", "spark_integration")
KINDS: Final = ("tests/unit", "tests/stories", "tests/contract", "tests/simulation")
"""The kinds of tests, in the order in which they are run: the fastest first."""

WORD: Final = re.compile(r"\w+")

DISTANCE_MAX: Final = 4
"""How many modules may stand between a test and the module with the mistake."""


class Importers:
    """Knows who imports whom, in product and tests."""

    def __init__(self, root: Path) -> None:
        self._root = root
        files = [p for top in (*PRODUCT, "tests") for p in sorted((root / top).rglob("*.py"))]
        self._file_by_module = {_module(p.relative_to(root)): p.relative_to(root) for p in files}
        self._importers: dict[Path, set[Path]] = {}
        for path in files:
            importer = path.relative_to(root)
            for name in _imported(path):
                imported = self._file_of(name)
                if imported is not None:
                    self._importers.setdefault(imported, set()).add(importer)

    def _file_of(self, name: str) -> Path | None:
        """Return the file of a module, or of the module that has this name in it."""
        return self._file_by_module.get(name) or self._file_by_module.get(name.rpartition(".")[0])

    def tests_of(self, file: Path) -> Sequence[Path]:
        """Return the test files that touch *file*, those that are most likely to notice first.

        The mirrored file of ``tests/unit`` comes first, then others by distance, by kind, and by
        how many of the module's own names they mention.
        """
        mirrored = Path("tests/unit", file.parent, f"test_{file.name}")
        distances = self._distances(file)
        tests = [path for path in distances if path.name.startswith("test_")]

        words = _words(self._root / file)

        def turn(path: Path) -> tuple[bool, int, int, int, str]:
            name = path.as_posix()
            kind = next((i for i, kind in enumerate(KINDS) if name.startswith(kind)), len(KINDS))
            shared = words & set(WORD.findall((self._root / path).read_text()))
            return path != mirrored, distances[path], kind, -len(shared), name

        return sorted(tests, key=turn)

    def _distances(self, file: Path) -> Mapping[Path, int]:
        """Return how far away each file is that imports *file*; helpers of tests count nothing."""
        known: dict[Path, int] = {}
        heap = [(0, file)]
        while heap:
            distance, path = heapq.heappop(heap)
            if path in known or distance > DISTANCE_MAX:
                continue
            known[path] = distance
            for importer in self._importers.get(path, ()):
                step = 0 if path.parts[0] == "tests" else 1
                heapq.heappush(heap, (distance + step, importer))
        return known


def _words(path: Path) -> set[str]:
    """Return the names that a module defines, and the words of its own name."""
    nodes = ast.walk(ast.parse(path.read_bytes()))
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    defined = {node.name for node in nodes if isinstance(node, kinds)}
    return {name for name in defined if not name.startswith("_")} | {path.stem}


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
