"""Events as Arrow columns: their names and types, and the conversion of events.

Names and types are those of the Scala connector for Event Hubs, so they are the same in Spark and
in a processor. As there, values of ``properties`` and ``systemProperties`` are JSON, so that ``1``
and ``"1"`` stay different.
"""

from eventproc._base import public_names as _public_names
from eventproc._base.extras import needing

with needing("columns"):
    from eventproc.columns._events import to_columns
    from eventproc.columns._schema import (
        COLUMNS,
        from_json,
        schema_of,
        to_json,
    )

__all__ = [
    "COLUMNS",
    "from_json",
    "schema_of",
    "to_columns",
    "to_json",
]

_public_names.set_module(__name__, globals())
