"""A mistake is one small change of the source that could be a programmer's. This module finds them.

It edits the text of one expression or statement, so the rest of the file stays as it is.
"""

import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

OTHER_COMPARISON: Final[dict[type[ast.cmpop], tuple[str, str]]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
OTHER_OPERATOR: Final[dict[type[ast.operator], tuple[str, str]]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
}
OTHER_FUNCTION: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
DELETED: Final = (ast.Expr, ast.AugAssign, ast.Delete, ast.Raise)
"""Statements that a programmer may forget. So is the assignment of an attribute."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Mistake:
    """The bytes from *start* to *stop* of a file are replaced by *after*."""

    file: str
    line: int
    start: int
    stop: int
    before: str
    after: str

    def __str__(self) -> str:
        """Return the place, and what it says without and with the mistake."""
        before, after = (" ".join(text.split()) for text in (self.before, self.after))
        return f"{self.file}:{self.line}  {before!r} -> {after!r}"

    def applied_to(self, source: bytes) -> bytes:
        """Return *source* with this mistake."""
        return source[: self.start] + self.after.encode() + source[self.stop :]


class _Finder(ast.NodeVisitor):
    """Collects the mistakes that could be made in one file."""

    def __init__(self, file: str, source: bytes) -> None:
        self.found: list[Mistake] = []
        self._file = file
        self._source = source
        self._line_starts = [0]
        for line in source.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None  # noqa: PT018
        return (
            self._line_starts[node.lineno - 1] + node.col_offset,
            self._line_starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def _add(self, start: int, stop: int, after: str) -> None:
        before = self._source[start:stop].decode()
        line = self._source.count(b"\n", 0, start) + 1
        mistake = Mistake(
            file=self._file, line=line, start=start, stop=stop, before=before, after=after
        )
        try:
            compile(mistake.applied_to(self._source), self._file, "exec")
        except SyntaxError:
            return
        self.found.append(mistake)

    def _replace(self, node: ast.expr | ast.stmt, after: str) -> None:
        self._add(*self._span(node), after)

    def _replace_between(self, left: ast.expr, right: ast.expr, words: tuple[str, str]) -> None:
        """Replace the operator between two expressions."""
        start, stop = self._span(left)[1], self._span(right)[0]
        between = self._source[start:stop].decode()
        if between.count(words[0]) == 1:
            self._add(start, stop, between.replace(*words))

    def visit_Compare(self, node: ast.Compare) -> None:
        words = OTHER_COMPARISON[type(node.ops[0])]
        self._replace_between(node.left, node.comparators[0], words)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        self._replace_between(node.values[0], node.values[1], words)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        words = OTHER_OPERATOR.get(type(node.op))
        is_text = any(
            isinstance(side, ast.JoinedStr)
            or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
            for side in (node.left, node.right)
        )
        if words and not is_text:
            self._replace_between(node.left, node.right, words)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            start, stop = self._span(node.operand)
            self._replace(node, f"({self._source[start:stop].decode()})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._replace(node, str(not value))
        elif isinstance(value, int):
            self._replace(node, str(value + 1))
        elif isinstance(value, float):
            self._replace(node, str(value * 2 or 1.0))

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.dump(node.test):
            return
        if node.orelse:
            self._negate(node.test)
        else:
            self._replace(node.test, "False")
        self.generic_visit(node)

    def _negate(self, node: ast.expr) -> None:
        start, stop = self._span(node)
        self._replace(node, f"not ({self._source[start:stop].decode()})")

    def visit_Try(self, node: ast.Try) -> None:
        for handler in node.handlers:
            if not isinstance(handler.body[-1], ast.Raise):
                first, last = handler.body[0], handler.body[-1]
                self._add(self._span(first)[0], self._span(last)[1], "raise")
        if node.finalbody:
            first, last = node.finalbody[0], node.finalbody[-1]
            self._add(self._span(first)[0], self._span(last)[1], "pass")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in OTHER_FUNCTION:
            self._replace(node.func, OTHER_FUNCTION[node.func.id])
        self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave assertions alone: they state what is always so."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_function(node)

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Visit defaults and body; decorators and annotations are no place for a mistake."""
        if node.name == "__repr__":
            return
        for part in (*node.args.defaults, *node.args.kw_defaults, *node.body):
            if part is not None:
                self.visit(part)

    def generic_visit(self, node: ast.AST) -> None:
        is_attribute_set = isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets
        )
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_docstring:
            return
        if isinstance(node, DELETED) or is_attribute_set:
            assert isinstance(node, ast.stmt)
            self._replace(node, "pass")
        super().generic_visit(node)


def mistakes_in(root: Path, file: Path) -> Sequence[Mistake]:
    """Return every mistake that can be made in *file*, a path below *root*."""
    source = (root / file).read_bytes()
    finder = _Finder(file.as_posix(), source)
    finder.visit(ast.parse(source))
    return sorted(set(finder.found))


def draw(root: Path, files: Sequence[Path], *, count: int, seed: str) -> Iterator[Mistake]:
    """Yield up to *count* mistakes in *files*, at most one in a line; the same for each *seed*."""
    by_line: dict[tuple[str, int], list[Mistake]] = {}
    for file in sorted(files):
        for mistake in mistakes_in(root, file):
            by_line.setdefault((mistake.file, mistake.line), []).append(mistake)
    rng = random.Random(seed)
    for line in rng.sample(sorted(by_line), min(count, len(by_line))):
        yield rng.choice(by_line[line])
