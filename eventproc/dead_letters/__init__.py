"""Dead letters: sinks and their readers, and how letters are replayed and dropped.

``blob`` needs the extra ``blob``; import it from its own module. The sink and the reader of a hub
or a queue are in the package of that source.
"""

from eventproc.dead_letters.function import FunctionDeadLetterSink
from eventproc.dead_letters.memory import MemoryDeadLetterReader, MemoryDeadLetterSink
from eventproc.dead_letters.replay import (
    LetterOutcome,
    LetterResult,
    ReplayTarget,
    drop,
    replay,
)
from eventproc.dead_letters.selection import LetterFilter, matching
from eventproc.dead_letters.to_handler import HandlerTarget
from eventproc.dead_letters.to_hub import HubTarget

__all__ = [
    "FunctionDeadLetterSink",
    "HandlerTarget",
    "HubTarget",
    "LetterFilter",
    "LetterOutcome",
    "LetterResult",
    "MemoryDeadLetterReader",
    "MemoryDeadLetterSink",
    "ReplayTarget",
    "drop",
    "matching",
    "replay",
]
