"""Exactly once in a storm: ``python -m tests.integration.transactions --database postgres``."""

import argparse
import sys
import tempfile
from pathlib import Path
from random import Random

from tests.integration.transactions.storm import DATABASES, run_storm


def main() -> int:
    """Return 1 if an event has no row, or two, or rows of a key are out of order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=DATABASES, default="postgres")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--keys", type=int, default=8, help="keys of a partition at once")
    parser.add_argument("--fault-every", type=float, default=2.5, help="seconds, on average")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        database = DATABASES[given.database](Path(folder))
        try:
            found = run_storm(
                database,
                Path(folder),
                events=given.events,
                keys=given.keys,
                rng=Random(given.seed),
                fault_every_s=given.fault_every,
                say=lambda line: print(line, flush=True),
            )
        finally:
            database.close()
    for violation in found:
        print(violation, file=sys.stderr)
    print(f"{given.events} events, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
