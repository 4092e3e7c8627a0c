"""Dead letters: sinks and their readers, and how letters are replayed and dropped.

``blob`` needs the extra ``blob``; import it from its own module. The sink and the reader of a hub
or a queue are in the package of that source.
"""

from eventproc._base import public_names as _public_names
from eventproc.dead_letters._memory import (
    FunctionDeadLetterSink,
    MemoryDeadLetterReader,
    MemoryDeadLetterSink,
)
from eventproc.dead_letters._replay import (
    LetterFilter,
    LetterOutcome,
    LetterResult,
    ReplayTarget,
    drop,
    matching,
    replay,
)
from eventproc.dead_letters._to_handler import HandlerTarget
from eventproc.dead_letters._to_hub import HubTarget

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

_public_names.set_module(__name__, globals())
