"""Which test files may notice a mistake in a module: those that import it, the nearest first."""

import ast
import heapq
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

PRODUCT: Final = ("eventproc", "checkpointstores", "spark_integration")
KINDS: Final = ("tests/unit", "tests/scenarios", "tests/contract", "tests/simulation")
"""The kinds of tests, in the order in which they are run: the fastest first."""

WORD: Final = re.compile(r"\w+")


class Importers:
    """Knows who imports whom, in product and tests."""

    def __init__(self, root: Path) -> None:
        self._root = root
        files = [p for top in (*PRODUCT, "tests") for p in sorted((root / top).rglob("*.py"))]
        self._file_by_module = {_module(p.relative_to(root)): p.relative_to(root) for p in files}
        self._tests = [p for p in self._file_by_module.values() if p.name.startswith("test_")]
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
        """Return the test files, those that are most likely to notice a mistake in *file* first.

        The mirrored file of ``tests/unit`` comes first, then others by distance, by kind, and by
        how many of the module's own names they mention. Those that no import leads to come last:
        a module may also be imported by its name in a table, as the verbs of the command are.
        """
        mirrored = Path("tests/unit", file.parent, f"test_{file.name}")
        distances = self._distances(file)
        words = _words(self._root / file)

        def turn(path: Path) -> tuple[bool, float, int, int, str]:
            name = path.as_posix()
            kind = next((i for i, kind in enumerate(KINDS) if name.startswith(kind)), len(KINDS))
            shared = words & set(WORD.findall((self._root / path).read_text()))
            distance = distances.get(path, math.inf)
            return path != mirrored, distance, kind if path in distances else 0, -len(shared), name

        return sorted(self._tests, key=turn)

    def _distances(self, file: Path) -> Mapping[Path, int]:
        """Return how far away each file is that imports *file*; helpers of tests count nothing."""
        known: dict[Path, int] = {}
        heap = [(0, file)]
        while heap:
            distance, path = heapq.heappop(heap)
            if path in known:
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
