"""Patterns: derived from the fields of one message, they find the fields of many at once.

A pattern is a list of steps from the first byte to the last. Each step is applied to all rows at
the same time. Each row has its own index into the buffer, because texts differ in length.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from eventproc._base.amqp import FIXED_SIZES, SIZE_WIDTHS, MalformedError, skip
from eventproc.sources._amqp.columns.buffer import PADDING, Buffer, Indexes, Mask

PATTERNS_MAX: Final = 64
"""Most patterns to keep for one link. The pattern that matched last is tried first."""

LEARNED_MAX: Final = 16
"""Most new patterns in one call; the messages that match none are decoded one by one."""


class Field(NamedTuple):
    """The values of one field in some rows."""

    constructor: int
    at: Indexes
    """Where each value begins, after its constructor and its size."""

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
    """A value that follows its size; the size has *width* bytes."""

    name: str
    constructor: int
    width: int


@dataclass(frozen=True, slots=True)
class _Opened:
    """The size of a list or map, whose items follow as steps."""

    width: int


@dataclass(frozen=True, slots=True)
class _Closed:
    """The end of the list or map of ``_Opened``."""


_Step = _Constant | _Fixed | _Sized | _Opened | _Closed


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that match one pattern."""

    rows: Indexes
    """The indexes of the rows, in rising order."""

    fields: Mapping[str, Field]

    def part(self, chosen: slice | Indexes) -> "Group":
        """Return some of the rows, chosen by their places in the group."""
        return Group(self.rows[chosen], {n: f.part(chosen) for n, f in self.fields.items()})


@dataclass(frozen=True, slots=True)
class Pattern:
    """The steps that find the fields of a message."""

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
        state = _MatchState(rows, at, ends)
        for step in self.steps:
            if not len(state.rows):
                break
            match step:
                case _Constant(expected):
                    state.keep(buffer.holds(expected, state.at))
                    state.at = state.at + len(expected)
                case _Fixed(name, constructor, size):
                    state.fields[name] = Field(constructor, state.at, size)
                    state.at = state.at + size
                case _Sized(name, constructor, width):
                    sizes = buffer.sizes(width, state.at)
                    state.fields[name] = Field(constructor, state.at + width, sizes)
                    state.at = state.at + width + sizes
                    state.keep(state.at <= state.ends)
                case _Opened(width):
                    state.closed_at = state.at + width + buffer.sizes(width, state.at)
                    state.at = state.at + width
                case _Closed():
                    state.keep(state.at == state.closed_at)
        state.keep(state.at == state.ends)
        return Group(state.rows, state.fields)


class _MatchState:
    """The rows that have matched so far, and the index that each has reached."""

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
        self._unchecked_size = 0
        """How many bytes the steps read after the last check of where the message ends."""
        self._is_regular = True

    def constant(self, size: int) -> bytes:
        """Add bytes that must be equal in each message; return them."""
        begin, self.at = self.at, self.at + size
        return self._payload[begin : self.at]

    def field(self, name: str) -> int:
        """Add a field of this name with the constructor found here; return the constructor."""
        constructor = self._payload[self.at]
        size, width = FIXED_SIZES.get(constructor >> 4), SIZE_WIDTHS.get(constructor >> 4)
        self.constant(1)
        if size is not None:
            self._end_constant()
            self._add(_Fixed(name, constructor, size), size)
            self.at += size
        elif width is not None:
            self._end_constant()
            self._add(_Sized(name, constructor, width), width)
            self._unchecked_size = 0
            self.at = skip(self._payload, self.at - 1)
        else:
            self._is_regular = False  # Described values are rare: no pattern has them.
            self.at = skip(self._payload, self.at - 1)
        self._constant_from = self.at
        return constructor

    def open(self) -> int:
        """Begin a list or map, whose items the next calls add; return how many items it has."""
        width = SIZE_WIDTHS.get(self._payload[self.at] >> 4)
        if width is None:
            raise MalformedError("no list or map")
        self.constant(1)
        self._end_constant()
        self._add(_Opened(width), width)
        self.at += width
        self._constant_from = self.at
        return int.from_bytes(self.constant(width))

    def close(self) -> None:
        """End the list or map."""
        self._end_constant()
        self._add(_Closed(), 0)

    def pattern(self) -> Pattern | None:
        """Return the pattern; ``None`` if no pattern can describe the message."""
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
        self._unchecked_size += size
        if self._unchecked_size >= PADDING:
            self._is_regular = False


class Patterns:
    """The patterns of the messages of one link."""

    def __init__(self, learn: Callable[[bytes], Pattern | None]) -> None:
        """Learn patterns with this function; it may raise ``MalformedError``."""
        self._learn = learn
        self._known: list[Pattern] = []

    def groups(self, buffer: Buffer, begins: Indexes, ends: Indexes) -> tuple[list[Group], Indexes]:
        """Return a group of rows for each pattern, and the rows that match no pattern."""
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
        """Add the rows that match a pattern as a group; return the other rows."""
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
