"""Log lines of eventproc, for programs that have not set up logging.

The loggers are those below ``eventproc`` of the standard library; ``docs/log-events.md`` lists
their events.
"""

from eventproc._base import public_names as _public_names
from eventproc._base.logs import JsonLines, TextLines, configure

__all__ = ["JsonLines", "TextLines", "configure"]

_public_names.set_module(__name__, globals())
