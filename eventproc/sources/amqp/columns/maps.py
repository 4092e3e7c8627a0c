"""Makes Arrow map columns from encoded maps."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from eventproc.sources.amqp.columns.buffer import Buffer
from eventproc.sources.amqp.columns.pattern import Field
from eventproc.sources.amqp.columns.values import json_texts


def map_column(buffer: Buffer, fields: Mapping[str, Field], row_count: int) -> pa.Array:
    """Return a map for each row, all with these names, and values as JSON."""
    names = list(fields)
    width = len(names)
    starts = pa.array(np.arange(row_count + 1, dtype=np.int32) * width)
    if not width:
        return pa.MapArray.from_arrays(starts, pa.array([], pa.string()), pa.array([], pa.string()))
    by_name = pa.concat_arrays([json_texts(buffer, field) for field in fields.values()])
    # Arrow wants the entries of a row side by side.
    by_row = np.arange(row_count * width).reshape(width, row_count).T.ravel()
    keys = pa.array(names).take(pa.array(np.tile(np.arange(width), row_count)))
    return pa.MapArray.from_arrays(starts, keys, by_name.take(pa.array(by_row)))
