"""Objects that exist are excluded from garbage collection, once."""

import subprocess
import sys

PROGRAM = """
import gc
from eventproc._base.threads import exclude_imports_from_collections
cycle = []
cycle.append(cycle)
del cycle
before = len(gc.get_objects())
exclude_imports_from_collections()
frozen = gc.get_freeze_count()
younger = [[] for _ in range(1000)]
exclude_imports_from_collections()
print(frozen > before // 2, gc.get_freeze_count() == frozen, len(gc.get_objects()) < before)
"""


def test_what_exists_at_the_first_call_is_excluded_and_nothing_later():
    """So that what a handler or a task makes is still collected."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["True"] * 3
