"""Set-up of Spark's Python processes."""

import gc
from functools import cache


@cache
def init_python_worker() -> None:
    """Exclude all objects that exist now from garbage collection. Later calls do nothing.

    PySpark collects garbage after every task. With the imported modules among the collected
    objects that takes 30 to 60 ms; once they are frozen, next to nothing.
    """
    gc.collect()
    gc.freeze()
