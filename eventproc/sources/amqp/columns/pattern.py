"""Patterns: where the fields of a message are, learned from one and found in many at once.

A pattern is a list of steps from front to back. All rows make a step at the same time: each row has
an index of its own into the buffer, because texts differ in length.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from eventproc.sources.amqp.columns.buffer import PADDING, Buffer, Indexes, Mask
from eventproc.sources.amqp.values import MalformedError, skip

PATTERNS_MAX: Final = 64
"""Most patterns to keep for one link; the one that matched last is tried first."""

LEARNED_MAX: Final = 16
"""Most patterns to learn from the messages of one call; what fits none is decoded by itself."""

# The upper four bits of a constructor give the number of bytes after it, or the width of the size
# field after it (AMQP 1.0, part 1, section 1.2).
_FIXED: Final = {0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}
_SIZED: Final = {0xA: 1, 0xB: 4, 0xC: 1, 0xD: 4, 0xE: 1, 0xF: 4}


class Field(NamedTuple):
    """The values of one field in some rows."""

    constructor: int
    at: Indexes
    """Where each value begins, behind its constructor and its size."""

    sizes: Indexes | int
    """Bytes of each value; a number if all have the same."""

    def part(self, chosen: "slice | Indexes | Mask") -> "Field":
        """Return the values of some rows."""
        sizes = self.sizes if isinstance(self.sizes, int) else self.sizes[chosen]
        return Field(self.constructor, self.at[chosen], sizes)


@dataclass(frozen=True, slots=True)
class _Constant:
    """The same bytes in each message."""

    expected: bytes


@dataclass(frozen=True, slots=True)
class _Fixed:
    """A value of a fixed size."""

    name: str
    constructor: int
    size: int


@dataclass(frozen=True, slots=True)
class _Sized:
    """A value behind its size, which has *width* bytes."""

    name: str
    constructor: int
    width: int


@dataclass(frozen=True, slots=True)
class _Opened:
    """The size of a list or map, whose items follow as steps."""

    width: int


@dataclass(frozen=True, slots=True)
class _Closed:
    """The end of that list or map."""


_Step = _Constant | _Fixed | _Sized | _Opened | _Closed


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that match one pattern."""

    rows: Indexes
    """Their indexes, rising."""

    fields: Mapping[str, Field]

    def part(self, chosen: slice | Indexes) -> "Group":
        """Return some of the rows, chosen by their places in the group."""
        return Group(self.rows[chosen], {n: f.part(chosen) for n, f in self.fields.items()})


@dataclass(frozen=True, slots=True)
class Pattern:
    """The form of a message."""

    steps: tuple[_Step, ...]

    def constructor_of(self, name: str) -> int | None:
        """Return the constructor of a field; ``None`` if there is no such field."""
        for step in self.steps:
            if isinstance(step, _Fixed | _Sized) and step.name == name:
                return step.constructor
        return None

    def match(self, buffer: Buffer, rows: Indexes, at: Indexes, ends: Indexes) -> Group:
        """Return those of the rows that match, with their fields.

        Args:
            buffer: Where the messages are.
            rows: The indexes of the rows to try.
            at: Where each of these rows begins.
            ends: Where each of them ends.
        """
        walk = _Walk(rows, at, ends)
        for step in self.steps:
            if not len(walk.rows):
                break
            match step:
                case _Constant(expected):
                    walk.keep(buffer.holds(expected, walk.at))
                    walk.at = walk.at + len(expected)
                case _Fixed(name, constructor, size):
                    walk.fields[name] = Field(constructor, walk.at, size)
                    walk.at = walk.at + size
                case _Sized(name, constructor, width):
                    sizes = buffer.sizes(width, walk.at)
                    walk.fields[name] = Field(constructor, walk.at + width, sizes)
                    walk.at = walk.at + width + sizes
                    walk.keep(walk.at <= walk.ends)
                case _Opened(width):
                    walk.closed_at = walk.at + width + buffer.sizes(width, walk.at)
                    walk.at = walk.at + width
                case _Closed():
                    walk.keep(walk.at == walk.closed_at)
        walk.keep(walk.at == walk.ends)
        return Group(walk.rows, walk.fields)


class _Walk:
    """The rows that have matched so far, and how far they are."""

    def __init__(self, rows: Indexes, at: Indexes, ends: Indexes) -> None:
        self.rows = rows
        self.at = at
        self.ends = ends
        self.closed_at = ends
        self.fields: dict[str, Field] = {}

    def keep(self, mask: Mask) -> None:
        """Leave out the rows that do not match."""
        if mask.all():
            return
        self.rows, self.at, self.ends = self.rows[mask], self.at[mask], self.ends[mask]
        self.closed_at = self.closed_at[mask]
        self.fields = {name: field.part(mask) for name, field in self.fields.items()}


class PatternMaker:
    """Makes a pattern from a message, from front to back."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._steps: list[_Step] = []
        self._constant_from = self.at = 0
        self._blind = 0
        """Bytes that the steps read since the last check of where the message ends."""
        self._is_regular = True

    def pass_over(self, size: int) -> bytes:
        """Let the next bytes be the same in each message, and return them."""
        begin, self.at = self.at, self.at + size
        return self._payload[begin : self.at]

    def value(self, name: str) -> int:
        """Let a value of this name follow, with the same constructor; return that."""
        constructor = self._payload[self.at]
        size, width = _FIXED.get(constructor >> 4), _SIZED.get(constructor >> 4)
        self.pass_over(1)
        if size is not None:
            self._end_constant()
            self._add(_Fixed(name, constructor, size), size)
            self.at += size
        elif width is not None:
            self._end_constant()
            self._add(_Sized(name, constructor, width), width)
            self._blind = 0
            self.at = skip(self._payload, self.at - 1)
        else:
            self._is_regular = False  # Described values are rare, and their descriptors many.
            self.at = skip(self._payload, self.at - 1)
        self._constant_from = self.at
        return constructor

    def open(self) -> int:
        """Let a list or map follow, and its items as steps; return how many items it has."""
        width = _SIZED.get(self._payload[self.at] >> 4)
        if width is None:
            raise MalformedError("no list or map")
        self.pass_over(1)
        self._end_constant()
        self._add(_Opened(width), width)
        self.at += width
        self._constant_from = self.at
        return int.from_bytes(self.pass_over(width))

    def close(self) -> None:
        """Let the list or map end here."""
        self._end_constant()
        self._add(_Closed(), 0)

    def made(self) -> Pattern | None:
        """Return the pattern; ``None`` if the message has a form that no pattern can have."""
        self._end_constant()
        is_ended = self.at == len(self._payload)
        return Pattern(tuple(self._steps)) if self._is_regular and is_ended else None

    def _end_constant(self) -> None:
        constant = self._payload[self._constant_from : self.at]
        self._constant_from = self.at
        if constant:
            self._add(_Constant(constant), len(constant))

    def _add(self, step: _Step, size: int) -> None:
        self._steps.append(step)
        self._blind += size
        if self._blind >= PADDING:
            self._is_regular = False


class Patterns:
    """The patterns of the messages of one link."""

    def __init__(self, learn: Callable[[bytes], Pattern | None]) -> None:
        """Learn patterns with this function; it may raise ``MalformedError``."""
        self._learn = learn
        self._known: list[Pattern] = []

    def groups(self, buffer: Buffer, begins: Indexes, ends: Indexes) -> tuple[list[Group], Indexes]:
        """Return the rows in groups of one pattern, and the rows that fit none."""
        left = np.arange(len(begins), dtype=np.intp)
        groups: list[Group] = []
        irregular: list[Indexes] = []
        for pattern in tuple(self._known):
            if not len(left):
                break
            left = self._try(pattern, buffer, left, begins, ends, groups)
        for _ in range(LEARNED_MAX):
            if not len(left):
                break
            learned = self._learned(buffer.raw[begins[left[0]] : ends[left[0]]])
            before = left
            if learned is not None:
                left = self._try(learned, buffer, left, begins, ends, groups)
            if len(left) == len(before):
                irregular.append(left[:1])
                left = left[1:]
        irregular.append(left)
        return groups, np.sort(np.concatenate(irregular))

    def _try(  # noqa: PLR0917 - one call with all that a match needs
        self,
        pattern: Pattern,
        buffer: Buffer,
        left: Indexes,
        begins: Indexes,
        ends: Indexes,
        groups: list[Group],
    ) -> Indexes:
        """Add the group of a pattern, if it has any rows; return the rows that are left."""
        is_all = len(left) == len(begins)
        group = pattern.match(
            buffer, left, begins if is_all else begins[left], ends if is_all else ends[left]
        )
        if not len(group.rows):
            return left
        groups.append(group)
        if pattern not in self._known[:1]:
            self._known = [pattern, *(known for known in self._known if known is not pattern)]
            del self._known[PATTERNS_MAX:]
        is_left = np.ones(len(begins), np.bool_)
        is_left[group.rows] = False
        return left[is_left[left]]

    def _learned(self, payload: bytes) -> Pattern | None:
        try:
            return self._learn(payload)
        except (MalformedError, IndexError):
            return None
