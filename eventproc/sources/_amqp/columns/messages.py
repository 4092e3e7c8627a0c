"""Encoded messages inside of one buffer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import overload

import numpy as np

from eventproc.sources._amqp.columns.buffer import PADDING, Buffer, Indexes


@dataclass(frozen=True, slots=True, eq=False)
class EncodedMessages(Sequence[bytes]):
    """Messages in order, each at its place in a buffer; bytes between them are ignored."""

    buffer: bytes
    begins: Indexes
    ends: Indexes

    @classmethod
    def of(cls, payloads: Sequence[bytes]) -> "EncodedMessages":
        """Join messages into a buffer."""
        ends = np.fromiter(accumulate(map(len, payloads)), np.intp, len(payloads))
        begins = np.concatenate((np.zeros(1, np.intp), ends[:-1])) if len(payloads) else ends
        return cls(b"".join(payloads), begins, ends)

    @classmethod
    def chain(cls, parts: Iterable["EncodedMessages"]) -> "EncodedMessages":
        """Return the messages of all parts, in order."""
        return cls(*_assembled(parts, b""))

    def __len__(self) -> int:
        return len(self.begins)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> "EncodedMessages": ...
    def __getitem__(self, index: int | slice) -> "bytes | EncodedMessages":
        """Return a message, or some of them."""
        if isinstance(index, slice):
            return EncodedMessages(self.buffer, self.begins[index], self.ends[index])
        return self.buffer[self.begins[index] : self.ends[index]]

    @property
    def byte_count(self) -> int:
        """The bytes of all messages together."""
        return int((self.ends - self.begins).sum())


def joined(parts: Iterable[EncodedMessages]) -> tuple[Buffer, Indexes, Indexes]:
    """Return all messages in one buffer, with the indexes at which they begin and end."""
    raw, begins, ends = _assembled(parts, bytes(PADDING))
    return Buffer(raw), begins, ends


def _assembled(parts: Iterable[EncodedMessages], tail: bytes) -> tuple[bytes, Indexes, Indexes]:
    """Return all parts and *tail* as one buffer, and where messages begin and end in it."""
    pieces: list[bytes | memoryview] = []
    begins: list[Indexes] = [np.empty(0, np.intp)]
    ends: list[Indexes] = [np.empty(0, np.intp)]
    at = 0
    for part in parts:
        if not len(part):
            continue
        first, last = int(part.begins[0]), int(part.ends[-1])
        pieces.append(memoryview(part.buffer)[first:last])
        begins.append(part.begins + (at - first))
        ends.append(part.ends + (at - first))
        at += last - first
    pieces.append(tail)
    return b"".join(pieces), np.concatenate(begins), np.concatenate(ends)
