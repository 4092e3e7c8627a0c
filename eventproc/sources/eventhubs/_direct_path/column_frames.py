"""Finds encoded messages in received frames, without copying them.

The frames' sizes show where each begins. Nearly all frames begin with the same bytes, except for
delivery id and tag; numpy compares these bytes in all frames at once. Every other frame goes to
``FrameParser``.
"""

import struct
from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from eventproc._base.amqp import MalformedError, skip
from eventproc.sources._amqp.columns import EncodedMessages, Indexes
from eventproc.sources.eventhubs._direct_path.frames import (
    FRAME_SIZE_MAX,
    FrameParser,
    ParsedFrames,
)

_SIZE: Final = struct.Struct(">I")
_FRAME_SIZE_MIN: Final = 8
_COMPARED_FROM: Final = 4
"""The comparison begins after the frame's size, which differs."""

_HANDLE_AT: Final = 14
_WORD: Final = 8
EQUAL_MIN: Final = 8
"""After this many frames of equal size, numpy counts how many more follow."""

HEADS_MAX: Final = 4
"""Most heads to keep: delivery ids and tags of different sizes need one each."""


@dataclass(frozen=True, slots=True)
class _Head:
    """The first bytes of frames that carry one whole message, as words of eight bytes."""

    size: int
    """Where the message begins in the frame."""

    words: npt.NDArray[np.uint64]
    mask: npt.NDArray[np.uint64]
    """Zeros where frames may differ: in delivery id and tag, and after the head."""


class ColumnFrameParser:
    """Extracts the messages of one link, as ``FrameParser`` does, without a copy of each."""

    def __init__(self, parser: FrameParser) -> None:
        """Continue after what this parser has parsed."""
        self._parser = parser
        self._heads: list[_Head] = []

    def parse(self, data: bytes) -> ParsedFrames:
        """Parse bytes that begin with a frame.

        Raises:
            MalformedError: the bytes are not AMQP.
        """
        edges = np.array(_edges(data), np.intp)
        starts, ends = edges[:-1], edges[1:]
        begins = self._begins(data, starts, ends)
        found = ParsedFrames(used=int(edges[-1]))
        others = [*np.flatnonzero(begins < 0).tolist(), len(begins)]
        parts: list[EncodedMessages] = []
        row = 0
        while row < len(begins):
            stop = others[bisect_left(others, row)]
            # While a message is incomplete, each frame may belong to it.
            if stop == row or self._parser.parts:
                message = self._parser.parse_other(data[starts[row] : ends[row]], found)
                if message is not None:
                    parts.append(EncodedMessages.of([message]))
                row += 1
            else:
                parts.append(EncodedMessages(data, begins[row:stop], ends[row:stop]))
                found.transfer_count += stop - row
                found.delivery_count += stop - row
                row = stop
        found.payloads = parts[0] if len(parts) == 1 else EncodedMessages.chain(parts)
        return found

    def _begins(self, data: bytes, starts: Indexes, ends: Indexes) -> Indexes:
        """Return where each frame's message begins; -1 unless the frame is one whole message."""
        begins = np.full(len(starts), -1, np.intp)
        left = np.arange(len(starts))
        for head in tuple(self._heads):
            left = _try(head, data, left, starts, ends, begins)
        for _ in range(HEADS_MAX - len(self._heads)):
            if not len(left):
                break
            first = int(left[0])
            learned = self._learn(data[starts[first] : ends[first]])
            left = left[1:]
            if learned is not None:
                self._heads.append(learned)
                begins[first] = starts[first] + learned.size
                left = _try(learned, data, left, starts, ends, begins)
        return begins

    def _learn(self, frame: bytes) -> _Head | None:
        """Return the head of a frame that carries one whole message."""
        begin = self._parser.whole_at(frame)
        if begin is None:
            return None
        word_count = -(-(begin - _COMPARED_FROM) // _WORD)
        mask = bytearray(b"\xff" * (begin - _COMPARED_FROM)).ljust(word_count * _WORD, b"\x00")
        at = skip(frame, _HANDLE_AT)
        for sized in (0, 1):  # Delivery id; tag, which follows its size.
            if at >= begin:
                break
            end = skip(frame, at)
            varying = range(at + 1 + sized, end)
            mask[at + 1 + sized - _COMPARED_FROM : end - _COMPARED_FROM] = bytes(len(varying))
            at = end
        words = frame[_COMPARED_FROM:].ljust(len(mask), b"\x00")[: len(mask)]
        zeros = np.frombuffer(bytes(mask), np.uint64)
        return _Head(begin, np.frombuffer(words, np.uint64) & zeros, zeros)


def _edges(data: bytes) -> list[int]:
    """Return where each complete frame begins, and where the last complete one ends."""
    edges: list[int] = []
    add, size_at = edges.append, _SIZE.unpack_from
    at, last = 0, len(data) - _FRAME_SIZE_MIN
    before = equal_count = 0
    while at <= last:
        (size,) = size_at(data, at)
        if not _FRAME_SIZE_MIN <= size <= FRAME_SIZE_MAX:
            raise MalformedError(f"a frame says that it has {size} bytes")
        equal_count = equal_count + 1 if size == before else 0
        before = size
        if equal_count >= EQUAL_MIN:
            run = _run_of(size, data, at)
            edges.extend(run)
            at = run.stop
            equal_count = 0
        else:
            add(at)
            at += size
    if at > len(data):
        return edges  # An incomplete frame follows the last edge.
    add(at)
    return edges


def _run_of(size: int, data: bytes, at: int) -> range:
    """Return where the frames begin that follow each other from *at* on and have this size."""
    count_max = (len(data) - at - _SIZE.size) // size + 1
    sizes = np.ndarray((count_max,), ">u4", data, at, (size,))
    others = np.flatnonzero(sizes != size)
    count = int(others[0]) if len(others) else count_max
    return range(at, at + count * size, size)


def _try(  # noqa: PLR0917 - the arrays of one call of ``parse``
    head: _Head, data: bytes, left: Indexes, starts: Indexes, ends: Indexes, begins: Indexes
) -> Indexes:
    """Set ``begins`` of the frames with this head; return the others of *left*."""
    size = len(head.words) * _WORD
    if not len(left) or len(data) < size + _COMPARED_FROM:
        return left
    windows = np.ndarray(
        (len(data) - _COMPARED_FROM - size + 1,),
        np.dtype((np.void, size)),
        data,
        _COMPARED_FROM,
        (1,),
    )
    at = starts[left]
    # Near the end of the data there are too few bytes to compare: parse those frames one by one.
    is_inside = at < len(windows)
    words = windows[at[is_inside]].view(np.uint64).reshape(-1, len(head.words))
    differs = np.bitwise_or.reduce((words & head.mask) ^ head.words, axis=1)
    is_found = np.zeros(len(left), np.bool_)
    is_found[is_inside] = differs == 0
    is_found &= at + head.size <= ends[left]
    begins[left[is_found]] = at[is_found] + head.size
    return left[~is_found]
