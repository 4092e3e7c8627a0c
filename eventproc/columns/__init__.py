"""Events as Arrow columns: their names and types, and the conversion of events.

Names and types are those of the Scala connector for Event Hubs, so they are the same in Spark and
in a processor. As there, values of ``properties`` and ``systemProperties`` are JSON, so that ``1``
and ``"1"`` stay different.
"""

from eventproc._base import public as _public
from eventproc._base.extras import needing

with needing("columns"):
    from eventproc.columns._events import to_columns
    from eventproc.columns._schema import (
        COLUMNS,
        PUBLISHER,
        WITH_OWN_COLUMN,
        check_names,
        from_json,
        schema_of,
        to_json,
    )
    from eventproc.columns._value_column import VALUE, value_array, value_type, with_column

__all__ = [
    "COLUMNS",
    "PUBLISHER",
    "VALUE",
    "WITH_OWN_COLUMN",
    "check_names",
    "from_json",
    "schema_of",
    "to_columns",
    "to_json",
    "value_array",
    "value_type",
    "with_column",
]

_public.set_module(__name__, globals())
