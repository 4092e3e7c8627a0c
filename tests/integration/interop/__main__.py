"""Run processors of every Azure SDK and ours in one group: ``make interop MINUTES=15``."""

import argparse
import sys
from random import Random

from .mixed import mixed


def main() -> int:
    """Return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="make interop", description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (not of the timing)")
    arguments = parser.parse_args()
    wrong = mixed(
        arguments.minutes * 60, Random(arguments.seed), lambda line: print(line, flush=True)
    )
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(wrong)} violations")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
