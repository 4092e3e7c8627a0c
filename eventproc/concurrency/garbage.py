"""Garbage collection in processes that live long."""

import gc
from functools import cache


@cache
def exclude_imports_from_collections() -> None:
    """Make the garbage collector ignore all objects that exist now. Later calls do nothing.

    Imported modules live as long as the process, and a full collection that visits them takes 30 to
    60 ms. PySpark runs one after every task.
    """
    gc.collect()
    gc.freeze()
